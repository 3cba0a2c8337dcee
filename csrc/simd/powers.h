// Powers, angles and remainders of vectors. Those of floats are computed in double, whose results
// are rounded once: within 0.6 units in the last place. Those of doubles are computed one by one.
#pragma once

#include <cmath>
#include <cstring>
#include <numbers>

#include "simd/vector.h"
#include "tensor/polynomial.h"

namespace renga::simd {

// f(x...) of vectors of doubles; floats are converted and back.
template <class F, class Target, class... In>
[[gnu::always_inline]] inline Vector<Target, float> in_doubles(const F& f,
                                                               const Vector<Target, float>& first,
                                                               const In&... more) {
  using D = Vector<Target, double>;
  using Half [[gnu::vector_size(2 * Target::width)]] = float;
  const auto half = [](const Floats<Target>& v, int k) __attribute__((always_inline)) {
    Half parts[2];
    std::memcpy(parts, &v, sizeof v);
    return D(__builtin_convertvector(parts[k], typename D::V));
  };
  Half parts[2];
#pragma GCC unroll 2
  for (int k = 0; k < 2; ++k) {
    parts[k] = __builtin_convertvector(f(half(first.v, k), half(more.v, k)...).v, Half);
  }
  Floats<Target> y;
  std::memcpy(&y, parts, sizeof y);
  return Vector<Target, float>(y);
}
template <class F, class Target, class... In>
[[gnu::always_inline]] inline Vector<Target, double> in_doubles(const F& f,
                                                                const Vector<Target, double>& first,
                                                                const In&... more) {
  return f(first, more...);
}

// f(a, b) of each pair of numbers.
template <class Target, class C, class F>
[[gnu::always_inline]] inline Vector<Target, C> one_by_one(const F& f, const Vector<Target, C>& a,
                                                           const Vector<Target, C>& b) {
  using V = Vector<Target, C>;
  C u[V::width], v[V::width];
  V::store(a.v, u);
  V::store(b.v, v);
  for (int k = 0; k < V::width; ++k) u[k] = f(u[k], v[k]);
  return V(V::load(u));
}

// The bits of floats as integers.
template <class D>
using BitsOf = typename D::Lanes;
template <class D>
[[gnu::always_inline]] inline BitsOf<D> bits_of(const D& x) {
  return reinterpret_cast<BitsOf<D>>(x.v);
}
template <class D>
[[gnu::always_inline]] inline D from_bits(const BitsOf<D>& bits) {
  return D(reinterpret_cast<typename D::V>(bits));
}
inline constexpr std::int64_t kSign = std::numeric_limits<std::int64_t>::min();

// |x| with the sign of y.
template <class D>
[[gnu::always_inline]] inline D with_sign(const D& x, const D& y) {
  return from_bits<D>((bits_of(x) & ~kSign) | (bits_of(y) & kSign));
}

// Added and subtracted again, it leaves the nearest integer of numbers up to 2^51.
inline constexpr double kRounding = 0x1.8p52;
template <class D>
[[gnu::always_inline]] inline D nearest(const D& x) {
  return (x + D(kRounding)) - D(kRounding);
}
template <class D>
[[gnu::always_inline]] inline D rounded_down(const D& x) {
  const D n = nearest(x);
  return select(n > x, n - D(1), n);
}

// Of positive normal doubles, with a relative error of 2^-38: x = m 2^k, where m is between the
// roots of 1/2 and of 2, and log m = 2 artanh((m - 1) / (m + 1)) by its series.
template <class D>
[[gnu::always_inline]] inline D logarithm_to_base_2(const D& x) {
  constexpr std::int64_t bias = 1024, root_of_half = 0x3fe6a09e667f3bcd;
  const BitsOf<D> k = (bits_of(x) - root_of_half + (bias << 52)) >> 52;  // and the bias
  const D m = from_bits<D>(bits_of(x) - (k << 52) + (bias << 52));
  const D exponent = from_bits<D>(k | 0x4330000000000000) - D(0x1p52 + bias);
  const D s = (m - D(1)) / (m + D(1)), z = s * s;
  D p = z * D(1.0 / 13) + D(1.0 / 11);
  p = p * z + D(1.0 / 9);
  p = p * z + D(1.0 / 7);
  p = p * z + D(1.0 / 5);
  p = p * z + D(1.0 / 3);
  p = p * z + D(1);
  return exponent + s * p * D(2 * std::numbers::log2e);
}

// 2^x for |x| <= 300, with a relative error of 2^-32, by Taylor's series around an integer.
template <class D>
[[gnu::always_inline]] inline D power_of_2(const D& x) {
  const D shifted = x + D(kRounding);
  const D z = (x - (shifted - D(kRounding))) * D(std::numbers::ln2);
  D p = z * D(1.0 / 40320) + D(1.0 / 5040);
  p = p * z + D(1.0 / 720);
  p = p * z + D(1.0 / 120);
  p = p * z + D(1.0 / 24);
  p = p * z + D(1.0 / 6);
  p = p * z + D(0.5);
  p = p * z + D(1);
  p = p * z + D(1);
  return from_bits<D>(bits_of(p) + (bits_of(shifted) << 52));
}

// 2^n for integers from -1022 to 1023.
template <class D>
[[gnu::always_inline]] inline D integer_power_of_2(const D& n) {
  return from_bits<D>((bits_of(n + D(kRounding)) + 1023) << 52);
}

// p 2^n of any size.
template <class Target>
[[gnu::always_inline]] inline Vector<Target, double> times_power_of_2(
    const Vector<Target, double>& p, const Vector<Target, double>& n) {
  using D = Vector<Target, double>;
#if defined(__x86_64__)
  if constexpr (Target::has_mask_registers) {
    D y;
    asm("vscalefpd %2, %1, %0" : "=v"(y.v) : "v"(p.v), "v"(n.v));
    return y;
  }
#endif
  // 2^n may be too large or small where the product is not.
  const D half = nearest(n * D(0.5));
  return p * integer_power_of_2(half) * integer_power_of_2(n - half);
}

// x = r + n log 2, where n is an integer and |r| at most log(2) / 2, and what r's rounding loses.
template <class D>
struct ReducedDouble {
  D r, n, lost;
};
template <class D>
[[gnu::always_inline]] inline ReducedDouble<D> reduced_double(const D& x) {
  // Of two parts, the first has 41 bits: its products with integers are exact.
  constexpr double ln2_high = 0x1.62e42fefa3p-1, ln2_low = 2.8235290563031577e-13;
  const D n = nearest(x * D(std::numbers::log2e)), high = x - n * D(ln2_high);
  const D r = high - n * D(ln2_low);
  return {r, n, (high - r) - n * D(ln2_low)};
}

// (e^r - 1 - r) / r², with an error of 2^-53 (minimax).
inline constexpr double kExponentialRest[] = {
    2.510038549551032e-08, 2.7620088445409746e-07, 2.7557268459997064e-06, 2.4801521295954376e-05,
    1.9841269863053618e-4, 1.3888888917213717e-3,  8.333333333330062e-3,   4.166666666662413e-2,
    0.16666666666666669,   0.5000000000000001};

// e^x factor, where the factor is a power of 2, within 2 units in the last place.
template <class D>
[[gnu::always_inline]] inline D exponential_of_doubles(const D& x, double exponent_of_factor = 0) {
  const ReducedDouble<D> parts = reduced_double(min(D(711), max(D(-746), x)));  // NaN stays
  const D p = (polynomial(parts.r, kExponentialRest) * parts.r + D(1)) * parts.r + D(1);
  return times_power_of_2(p, parts.n + D(exponent_of_factor));
}

// e^x - 1 within 2 units in the last place.
template <class D>
[[gnu::always_inline]] inline D exponential_less_1_of_doubles(const D& x) {
  const ReducedDouble<D> parts = reduced_double(min(D(710), max(D(-40), x)));
  const D r = parts.r, rest = polynomial(r, kExponentialRest) * r * r + parts.lost;
  // (1 + r + rest) 2^n - 1 by halves, as 2^n is too large for the largest results.
  const D power = integer_power_of_2(parts.n - D(1));
  const D half = (power * r + (power - D(0.5))) + power * rest;
  return select(abs(x) < D(1e-300), x, half + half);
}

// x^y of doubles that are floats, with the exceptions of the C standard.
template <class D>
[[gnu::always_inline]] inline D power_of_floats(const D& x, const D& y) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const D size = abs(x);
  D log = logarithm_to_base_2(size);
  log = select(size == D(0), D(-infinity), select(size == D(infinity), D(infinity), log));
  D t = select(log == D(0), D(0), y * log);
  t = select(y == D(0), D(0), select(isnan(x), x, t));
  // As a float, the power is 0 or infinite beyond the limits. NaN stays.
  const D power = power_of_2(min(D(300), max(D(-300), t)));
  const D positive = select(isnan(t), t, power);
  // Even and odd integers; floats from 2^24 on are even.
  const D whole = min(D(0x1p30), abs(y)), half = whole * D(0.5);
  const D odd = from_bits<D>(bits_of(positive) ^ (bits_of(x) & kSign));
  const D undefined = D(std::numeric_limits<double>::quiet_NaN());
  const D other = select((x < D(0)) && (x > D(-infinity)), undefined, positive);
  return select(nearest(half) == half, positive, select(nearest(whole) == whole, odd, other));
}

template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> pow(const Vector<Target, C>& x,
                                                    const Vector<Target, C>& y) {
  if constexpr (std::is_same_v<C, float>) {
    return in_doubles(
        [](const auto& a, const auto& b)
            __attribute__((always_inline)) { return power_of_floats(a, b); },
        x, y);
  } else {
    return one_by_one([](C a, C b) { return std::pow(a, b); }, x, y);
  }
}

// The angle of the point (x, y): that of the smaller coordinate over the larger one is at most an
// eighth of a turn, whose tangent a minimax polynomial inverts with a relative error of 2^-33.
template <class D>
[[gnu::always_inline]] inline D angle_of_floats(const D& y, const D& x) {
  constexpr double kCoefficients[] = {-6.84794194246e-4, 4.85094351060e-3,  -1.61117045909e-2,
                                      3.42096411119e-2,  -5.42791347867e-2, 7.24571973504e-2,
                                      -8.98023955630e-2, 1.10932413441e-1,  -1.42839807674e-1,
                                      1.99999120517e-1,  -3.33333315712e-1, 9.99999999941e-1};
  const D height = abs(y), width = abs(x), most = max(height, width), least = min(height, width);
  D t = select(least == most, D(1), least / most);
  t = select(most == D(0), D(0), t);
  const D z = t * t;
  D angle = t * polynomial(z, kCoefficients);
  angle = select(height > width, D(std::numbers::pi / 2) - angle, angle);
  angle = select(with_sign(D(1), x) < D(0), D(std::numbers::pi) - angle, angle);
  return select(isnan(y), y, select(isnan(x), x, with_sign(angle, y)));
}

template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> atan2(const Vector<Target, C>& y,
                                                      const Vector<Target, C>& x) {
  if constexpr (std::is_same_v<C, float>) {
    return in_doubles(
        [](const auto& a, const auto& b)
            __attribute__((always_inline)) { return angle_of_floats(a, b); },
        y, x);
  } else {
    return one_by_one([](C a, C b) { return std::atan2(a, b); }, y, x);
  }
}

// f(a, b) of floats by vectors of doubles where all quotients are below a limit, up to which a
// double does not round the quotient of two floats to an integer; else by `other`, one by one.
template <class Target, class F, class Other>
[[gnu::always_inline]] inline Vector<Target, float> by_quotients(const Vector<Target, float>& a,
                                                                 const Vector<Target, float>& b,
                                                                 const F& f, const Other& other) {
  using V = Vector<Target, float>;
  constexpr float limit = 0x1p24f, largest = std::numeric_limits<float>::max();
  if (all((abs(a / b) < V(limit)) && (abs(b) <= V(largest)))) {
    return in_doubles(f, a, b);
  }
  return one_by_one(other, a, b);
}

template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> fmod(const Vector<Target, C>& a,
                                                     const Vector<Target, C>& b) {
  const auto of_numbers = [](C u, C v) { return std::fmod(u, v); };
  if constexpr (std::is_same_v<C, float>) {
    return by_quotients(
        a, b, [](const auto& u, const auto& v) __attribute__((always_inline)) {
          const auto remainder = abs(u) - rounded_down(abs(u / v)) * abs(v);
          return with_sign(remainder, u);
        },
        of_numbers);
  } else {
    return one_by_one(of_numbers, a, b);
  }
}

// floor(a / b), which `of_numbers` computes of single ones.
template <class Target, class C, class Other>
[[gnu::always_inline]] inline Vector<Target, C> floor_quotient(const Vector<Target, C>& a,
                                                               const Vector<Target, C>& b,
                                                               const Other& of_numbers) {
  if constexpr (std::is_same_v<C, float>) {
    return by_quotients(
        a, b, [](const auto& u, const auto& v) __attribute__((always_inline)) {
          const auto quotient = u / v;
          return with_sign(rounded_down(quotient), quotient);
        },
        of_numbers);
  } else {
    return one_by_one(of_numbers, a, b);
  }
}

}  // namespace renga::simd
