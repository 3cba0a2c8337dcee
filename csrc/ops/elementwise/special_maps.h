// The complement of the error function, its inverses, and those of the normal distribution: of
// single numbers here, and of vectors as simd/special.h has them.
#pragma once

#include <limits>
#include <numbers>

#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/numbers.h"
#include "tensor/polynomial.h"

namespace renga::maps {

// y of erfc(y) = x, for x from 0 to 1: an approximation of 3 digits, and three steps of Halley's
// method, each of which makes three times as many.
template <class C>
RENGA_INLINE C upper_inverse_erfc(C x) {
  const C log = std::log(x * (C(2) - x)) / C(2), t = C(2 / (std::numbers::pi * 0.147)) + log;
  C y = std::sqrt(std::sqrt(t * t - log * C(2 / 0.147)) - t);
  for (int step = 0; step < 3; ++step) {
    const C half_power = std::exp(y * y / C(2));  // whose square could overflow
    const C slope = C(0.5 / std::numbers::inv_sqrtpi) * half_power;
    const C distance = (std::erfc(y) - x) * slope * half_power;
    y += distance / (C(1) - y * distance);
  }
  return y;
}

// Near 0, erf tells numbers apart that erfc does not.
template <class C>
RENGA_INLINE C inverse_erf(C x) {
  const C size = std::abs(x);
  if (!(size < C(1))) {
    const C infinity = std::numeric_limits<C>::infinity();
    return size == C(1) ? std::copysign(infinity, x) : std::numeric_limits<C>::quiet_NaN();
  }
  if (size > C(0.5)) return std::copysign(upper_inverse_erfc(C(1) - size), x);
  C y = x;
  for (int step = 0; step < 5; ++step) {
    const C slope = C(0.5 / std::numbers::inv_sqrtpi) * std::exp(y * y);
    const C distance = (x - std::erf(y)) * slope;
    y += distance / (C(1) - y * distance);
  }
  return y;
}
template <class C>
RENGA_INLINE C inverse_erfc(C x) {
  return x > C(0) && x < C(0.5) ? upper_inverse_erfc(x) : inverse_erf(C(1) - x);
}

// erfc(x) e^(x²) for x >= 0, in double: a quotient that changes slowly.
template <class D>
RENGA_INLINE D scaled_upper_erfc(const D& x) {
  constexpr double kQuotient[] = {
      8.7069337035874774e-10, 9.743488184157428e-10,  -8.4149707518986054e-9,
      -1.3249070856114109e-8, 4.1607447795741898e-8,  1.0168868600959385e-7,
      -1.4133462931277012e-7, -6.164089142526194e-7,  3.5661841232107293e-7,
      3.4722155668042946e-6,  -7.3139292816482057e-7, -2.0100461537999963e-5,
      4.9494441694862224e-6,  0.00012509931541908671, -0.00010515979080326587,
      -0.0007798322639546095, 0.0018886903579537159,  0.0025293918149782769,
      -0.023770514918557776,  0.068308027344058197,   -0.11927366341530993,
      0.12964515870275796,    -0.047562294353450843,  -0.13562110612458115,
      1.2530080582697297};
  const D t = select(x < D(1e30), D((x - D(3)) / (x + D(3))), D(1));
  return select(isnan(x), x, D(polynomial(t, kQuotient) / (D(1) + x + x)));
}

// e^(factor x²), as exact for large x as for small ones.
template <class D>
RENGA_INLINE D exp_of_square(const D& x, double factor) {
  constexpr double round = 0x1.8p32;  // added and subtracted again, it leaves 26 bits of x
  const D high = (x + D(round)) - D(round);
  const D low = (x - high) * (x + high) * D(factor);
  const D power = exp(D(high * high * D(factor)));
  return select(abs(x) < D(60), D(power * (D(1) + (low + low * low * (D(0.5) + low * D(1.0 / 6))))),
                power);
}

struct ScaledErfc {
  template <class D>
  RENGA_INLINE D operator()(const D& x) const {
    const D upper = scaled_upper_erfc(D(abs(x)));
    if (all(x >= D(0))) return upper;
    const D square = exp_of_square(x, 1);
    return select(x < D(0), D(square + square - upper), upper);
  }
};

// The logarithm of ndtr: of the tail itself for x < 0, of 1 less the tail for others.
struct LogNormalCdf {
  template <class D>
  RENGA_INLINE D operator()(const D& x) const {
    const D size = abs(x) * D(1 / std::numbers::sqrt2), half = scaled_upper_erfc(size) * D(0.5);
    const D tail = half * exp_of_square(x, -0.5), rest = D(1) - tail;
    const auto is_below = x < D(0);
    // What is lost in 1 - tail is added to its logarithm.
    const D more = ((D(1) - rest) - tail) / rest;
    return log(D(select(is_below, half, rest))) + select(is_below, D(-(size * size)), more);
  }
};

// Erfc takes vectors of doubles, beyond 28 of which it is 0.
struct Erfc {
  template <class D>
  RENGA_INLINE D operator()(const D& x) const {
    const D tail = scaled_erfc(D(min(D(28), D(abs(x))))) * exp_of_square(x, -1);
    return select(x < D(0), D(D(2) - tail), tail);
  }
};
struct NormalCdf {
  template <class D>
  RENGA_INLINE D operator()(const D& x) const {
    const D size = min(D(28), D(abs(x) * D(1 / std::numbers::sqrt2)));
    const D tail = scaled_erfc(size) * exp_of_square(x, -0.5) * D(0.5);
    return select(x > D(0), D(D(1) - tail), tail);
  }
};

// y of erf(y) = x where 1 - |x| = rest: by a minimax polynomial of w = -log(1 - x²) up to 5;
// beyond, by steps of Newton's method for the logarithm of the tail: one from an approximation that
// `start` makes of w up to 100 to 2^-29, two from that of erfc(y) by e^(-y²) / (y √π).
template <class D, class Start>
RENGA_INLINE D inverse_erf_of_doubles(const D& x, const D& rest, const Start& start) {
  constexpr double kHalfRootOfPi = 0.5 / std::numbers::inv_sqrtpi;
  constexpr double kCenter[] = {
      -3.9169363297916481e-11, 3.8674172387654632e-11, 4.4650677608736675e-10,
      -9.7602047131968517e-10, -1.9880707100189076e-9, 1.1040417909061025e-8,
      -6.7081093264838198e-9,  -7.08985061397636e-8,   1.9953933232996817e-7,
      1.3583392473566449e-7,   -1.8538705541053269e-6, 2.8516528170608338e-6,
      8.652721877484877e-6,    -4.1432071450377934e-5, 2.047241783942081e-5,
      2.9219068513421632e-4,   -8.3413564369264816e-4, -4.8789839832521548e-4,
      8.5254009509398913e-3,   -1.9573561059547376e-2, -2.6108235777397649e-2,
      0.6166006918604175,      1.5014093511107919};
  const D w = -log(D(rest * (D(2) - rest)));
  const D center = x * polynomial(D(w * D(0.4) - D(1)), kCenter);
  const auto is_near = w < D(5);
  if (all(is_near)) return center;
  const D log_of_rest = log(rest);
  const auto next = [&](const D& y) __attribute__((always_inline)) {
    const D upper = scaled_upper_erfc(y);
    return D(y + D(kHalfRootOfPi) * upper * (log(upper) - y * y - log_of_rest));
  };
  D y = abs(x) * start(w);
  const auto is_of_start = w < D(100);
  if (!all(is_of_start)) {
    const D square = D(-0.5) * log(log_of_rest * D(-std::numbers::pi)) - log_of_rest;
    y = select(is_of_start, y, next(sqrt(square)));
  }
  const D size = next(y);
  const D limit = select(rest == D(0), D(std::numeric_limits<double>::infinity()), size);
  return select(is_near, center, D(select(x < D(0), D(-limit), limit)));
}

template <Unary map, class C>
RENGA_INLINE C special_of_number(C v) {
  if constexpr (map == Unary::erfc) return std::erfc(v);
  if constexpr (map == Unary::ndtr) return C(0.5) * std::erfc(v * C(-1 / std::numbers::sqrt2));
  if constexpr (map == Unary::erfinv) return inverse_erf(v);
  if constexpr (map == Unary::erfcinv) return inverse_erfc(v);
  if constexpr (map == Unary::ndtri) return inverse_erfc(v + v) * C(-std::numbers::sqrt2);
}
template <Unary map, class V>
RENGA_INLINE V special(const V& v) {
  if constexpr (std::is_arithmetic_v<V>) {
    return special_of_number<map>(v);
  } else if constexpr (std::is_same_v<element_of<V>, float>) {
    if constexpr (map == Unary::erfc) return erfc_of_floats(v);
    if constexpr (map == Unary::ndtr) return ndtr_of_floats(v);
    if constexpr (map == Unary::erfinv) return erfinv_of_floats(v);
    if constexpr (map == Unary::erfcinv) return erfcinv_of_floats(v);
    if constexpr (map == Unary::ndtri) return ndtri_of_floats(v);
  } else {
    const auto start = [](const V& w) __attribute__((always_inline)) {
      return slope_of_inverse_erf(w);
    };
    const auto by_rest = [&](const V& y) __attribute__((always_inline)) {
      const V upper = V(2) - y, rest = select(y < V(1), y, upper);
      return inverse_erf_of_doubles(V(1) - y, rest, start);
    };
    if constexpr (map == Unary::erfc) return Erfc{}(v);
    if constexpr (map == Unary::ndtr) return NormalCdf{}(v);
    if constexpr (map == Unary::erfinv) return inverse_erf_of_doubles(v, V(1) - abs(v), start);
    if constexpr (map == Unary::erfcinv) return by_rest(v);
    if constexpr (map == Unary::ndtri) return by_rest(v + v) * V(-std::numbers::sqrt2);
  }
}

}  // namespace renga::maps
