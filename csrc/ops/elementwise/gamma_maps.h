// The logarithm of the gamma function, its derivatives and Hurwitz's zeta function, of doubles or
// vectors of doubles. Right of 0, results are within 2^-47 of their size, but near the root of
// digamma within 2^-51; left of 0 they are differences, and as exact as the larger number.
// Polynomials are minimax approximations.
#pragma once

#include <limits>
#include <numbers>

#include "ops/elementwise/numbers.h"
#include "tensor/polynomial.h"

namespace renga::maps {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// x less the nearest integer.
template <class D>
RENGA_INLINE D distance_to_integer(const D& x) {
  return x - floor(D(x + D(0.5)));
}

struct LogGamma {
  template <class D>
  RENGA_INLINE D operator()(const D& x) const {
    const D upper = of_positive(D(abs(x)));
    if (all(x >= D(0))) return upper;
    const D distance = distance_to_integer(x);
    const D sine = abs(sin(D(distance * D(std::numbers::pi))));
    constexpr double kLogOfPi = 1.1447298858494001741;
    const D lower = D(kLogOfPi) - log(sine) - log(D(abs(x))) - upper;
    const D finite = select(abs(x) < D(1e-290), upper, lower);  // where the sine is rounded
    const D left = select(distance == D(0), D(kInfinity), finite);
    return select(x < D(0), select(x == D(-kInfinity), x, left), upper);
  }

 private:
  template <class D>
  RENGA_INLINE static D of_positive(const D& x) {
    // log gamma(2 + t) / t for |t| <= 1/2.
    constexpr double kNear[] = {
        6.3790475076197737e-8,  -1.3412819758517286e-7, 2.0304806751615228e-7,
        -4.3035587603599612e-7, 9.5786633341147577e-7,  -2.0449201467015115e-6,
        4.3743749169151307e-6,  -9.4384587162428112e-6, 2.0507267416057788e-5,
        -4.4926351103833331e-5, 9.9457509098893916e-5,  -0.00022315475074520367,
        0.00050966952488530961, -0.0011927539120010226, 0.002890510330738737,
        -0.0073855510286681537, 0.020580808427784569,   -0.067352301053198139,
        0.32246703342411322,    0.42278433509846714};
    // Stirling's series in 1 / x², from 8.5 on.
    constexpr double kFar[] = {-0.0016796510732729058, 0.00083818142368110417,
                               -0.0005952129166201365, 0.00079365071270298331,
                               -0.0027777777776821597, 0.083333333333333315};
    // gamma(near) product^±1 for a number between 1.5 and 2.5, one or two steps higher or up to six
    // lower.
    const auto is_below_half = x < D(0.5), is_low = x < D(1.5), is_far = x >= D(8.5);
    D t = select(is_below_half, x, select(is_low, D(x - D(1)), D(x - D(2))));  // near less 2
    D product = select(is_below_half, D(x * (x + D(1))), select(is_low, x, D(1)));
    if (!all(x < D(2.5))) {
      for (int step = 0; step < 6; ++step) {
        const auto is_high = t >= D(0.5);
        t = select(is_high, D(t - D(1)), t);
        product = select(is_high, D(product * (t + D(2))), product);
      }
    }
    const D logarithm = log(D(select(is_far, x, product)));
    const D nearby = t * polynomial(t, kNear) + select(is_low, -logarithm, logarithm);
    const D inverse = D(1) / x;
    constexpr double kConstant = 0.41893853320467274178;  // (log(2 pi) - 1) / 2
    const D distant = (x - D(0.5)) * (logarithm - D(1)) + D(kConstant) +
                      inverse * polynomial(D(inverse * inverse), kFar);
    return select(is_far, distant, nearby);
  }
};

struct Digamma {
  template <class D>
  RENGA_INLINE D operator()(const D& x) const {
    const auto is_negative = x < D(0);
    const D z = select(is_negative, D(D(1) - x), x);
    const D upper = of_positive(z);
    if (all(x >= D(0))) return upper;
    const D distance = distance_to_integer(x);
    const D lower = upper - D(std::numbers::pi) / tan(D(distance * D(std::numbers::pi)));
    return select(is_negative, select(distance == D(0), D(kUndefined), lower), upper);
  }

 private:
  template <class D>
  RENGA_INLINE static D of_positive(const D& x) {
    // The asymptotic series in 1 / x², from 10 on.
    constexpr double kSeries[] = {-0.018818831275584015,  0.0075509596525435051,
                                  -0.0041665399400346631, 0.0039682536734793581,
                                  -0.0083333333330815907, 0.083333333333333298};
    constexpr int kSteps = 10;
    const auto is_near = x < D(kSteps);
    // The sum of 1 / (x + k) as a fraction.
    D numerator(1), denominator = x;
    for (int k = 1; k < kSteps; ++k) {
      const D t = x + D(k);
      numerator = numerator * t + denominator;
      denominator = denominator * t;
    }
    const D far = select(is_near, D(x + D(kSteps)), x), inverse = D(1) / far;
    const D square = inverse * inverse;
    const D y = log(far) - inverse * D(0.5) - square * polynomial(square, kSeries);
    return y - select(is_near, D(numerator / denominator), D(0));
  }
};

// The sum over k of (q + k)^-s by the formula of Euler and Maclaurin: `Power` raises numbers to
// the power s - 1.
template <class D, class Power>
RENGA_INLINE D euler_maclaurin(const D& s, const D& q, const Power& power) {
  constexpr int kTerms = 9;
  // B_2j / (2j)!
  constexpr double kBernoulli[] = {
      0.083333333333333333,    -0.0013888888888888889,  3.3068783068783069e-5,
      -8.2671957671957672e-7,  2.0876756987868099e-8,   -5.2841901386874932e-10,
      1.3382536530684679e-11,  -3.3896802963225829e-13, 8.5860620562778446e-15,
      -2.1748686985580619e-16, 5.5090028283602295e-18,  -1.3954464685812523e-19};
  // Far out, the integral is the sum.
  const auto is_near = q < D(1e15);
  const D first = select(is_near, q, D(1)), last = select(is_near, D(q + D(kTerms)), q);
  // The reciprocals of first + k, all but that for k = 0 by one division.
  D products[kTerms], inverses[kTerms + 1], powers[kTerms + 1];
  products[0] = D(1);
  for (int k = 1; k < kTerms; ++k) products[k] = products[k - 1] * (first + D(k));
  D rest = D(1) / products[kTerms - 1];
  for (int k = kTerms - 1; k > 0; --k) {
    inverses[k] = rest * products[k - 1];
    rest = rest * (first + D(k));
  }
  inverses[0] = D(1) / first;
  inverses[kTerms] = D(1) / last;
  power(inverses, powers);
  D sum(0);
  for (int k = kTerms - 1; k >= 0; --k) sum = sum + powers[k] * inverses[k];
  const D inverse = inverses[kTerms], square = inverse * inverse;
  D factor = s * inverse, series(0.5);
  for (int j = 0; j < static_cast<int>(std::size(kBernoulli)); ++j) {
    series = series + D(kBernoulli[j]) * factor;
    factor = factor * ((s + D(2 * j + 1)) * (s + D(2 * j + 2)) * square);
  }
  const D tail = powers[kTerms] * (D(1) / (s - D(1)) + inverse * series);
  return select(is_near, sum, D(0)) + tail;
}

// Returns the sum over k of (q + k)^-s for any q where s is an integer: terms left of 0 are a
// difference of two such sums.
template <class D, class Power>
RENGA_INLINE D sum_of_powers(const D& s, const D& any, const Power& power) {
  constexpr double kLeast = -1e300;  // is a pole, as -infinity is
  const D q = select(any < D(kLeast), D(kLeast), any);
  const auto is_negative = q < D(0);
  const D fraction = q - floor(q);
  const D upper = euler_maclaurin(s, select(is_negative, fraction, D(abs(q))), power);
  if (all(q >= D(0))) return upper;
  const D terms = euler_maclaurin(s, D(D(1) - fraction), power) -
                  euler_maclaurin(s, D(D(1) - select(is_negative, q, D(0))), power);
  const D half = s * D(0.5);
  const D lower = upper + select(floor(half) == half, terms, -terms);
  return select(is_negative, lower, upper);
}

struct Polygamma {
  // Derivative n of digamma(x). The first one is compiled for its order, and takes two
  // thirds of the time.
  template <class D>
  RENGA_INLINE D operator()(const D& n, const D& x) const {
    if (all(n == D(1))) return derivative(D(1), x);
    return derivative(n, x);
  }

 private:
  template <class D>
  RENGA_INLINE static D derivative(const D& n, const D& x) {
    constexpr double kMost = 171;  // from its factorial on, all are infinite
    const D order = min(n, D(kMost));
    // Factors and powers are as many times smaller and larger: neither leaves the range of doubles.
    const D scale = max(D(1), D(order * D(0.375)));
    const auto power = [&](const D* numbers, D* powers) __attribute__((always_inline)) {
      raise(order, scale, numbers, powers);
    };
    const D sum = sum_of_powers(D(order + D(1)), x, power);
    D factorial(1);
    for (D k(1); !all(order < k); k = k + D(1)) {
      factorial = select(order >= k, D(factorial * (k / scale)), factorial);
    }
    const D half = order * D(0.5), size = factorial * sum;
    const D y = select(floor(half) == half, -size, size);
    if (all(order >= D(1))) return y;
    return select(order == D(0), Digamma{}(x), select(order < D(0), D(kUndefined), y));
  }

  // Powers of scaled numbers with integers from 0 to 171, by squares.
  template <class D>
  RENGA_INLINE static void raise(const D& exponent, const D& scale, const D* numbers, D* powers) {
    constexpr int count = 10;
    D squares[count];
    for (int k = 0; k < count; ++k) {
      squares[k] = numbers[k] * scale;
      powers[k] = D(1);
    }
    for (D rest = exponent; !all(rest < D(1));) {
      constexpr double round = 0x1.8p52;  // added and subtracted again, it leaves an integer
      const D half = ((rest * D(0.5) - D(0.25)) + D(round)) - D(round);
      const auto is_even = half + half == rest;
      for (int k = 0; k < count; ++k) {
        powers[k] = select(is_even, powers[k], D(powers[k] * squares[k]));
        squares[k] = squares[k] * squares[k];
      }
      rest = half;
    }
  }
};

struct HurwitzZeta {
  double more;  // is added to the order

  template <class D>
  RENGA_INLINE D operator()(const D& order, const D& q) const {
    const D s = order + D(more);
    const auto power = [&](const D* numbers, D* powers) __attribute__((always_inline)) {
      for (int k = 0; k < 10; ++k) powers[k] = exp(D((s - D(1)) * log(numbers[k])));
    };
    const D sum = sum_of_powers(s, q, power);
    // Powers of negative numbers need an integer.
    const D defined = select(q < D(0), select(floor(s) == s, sum, D(kUndefined)), sum);
    const D beyond = select(q > D(0), defined, select(floor(q) == q, D(kInfinity), defined));
    return select(s > D(1), beyond, select(s == D(1), D(kInfinity), D(kUndefined)));
  }
};

}  // namespace renga::maps
