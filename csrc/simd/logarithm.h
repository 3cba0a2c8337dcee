// Logarithms of vectors of floats and of doubles within 2 units in the last place, for all numbers.
#pragma once

#include <bit>
#include <cstdint>
#include <numbers>

#include "simd/powers.h"

namespace renga::simd {

// x = (1 + f) 2^exponent, where 1 + f is between the roots of 1/2 and of 2, and log(1 + f) is
// f + rest.
template <class V>
struct LogarithmParts {
  V exponent, f, rest;
};

// Coefficients of minimax polynomials from the highest power on: of (log(1 + f) - f + f²/2) / f³ in
// f for floats, of (2 artanh(s) / s - 2) / s² in s² for doubles.
inline constexpr float kFloatLogarithm[] = {0.0697161147f, -0.114797338f, 0.116854199f,
                                            -0.124256873f, 0.142490576f,  -0.166678023f,
                                            0.200007157f,  -0.24999997f,  0.333333312f};
inline constexpr double kDoubleLogarithm[] = {
    0.13088034850927554, 0.13268638369266824, 0.15386244737621667, 0.18181795547521136,
    0.22222222392581045, 0.28571428570799785, 0.40000000000000883, 0.66666666666666666};

// Whether the instructions of AVX-512 for parts of floats and for kinds of numbers are there.
template <class V>
inline constexpr bool kHasParts =
#if defined(__x86_64__)
    sizeof(V) == 64 && std::is_same_v<typename V::value_type, float>;
#else
    false;
#endif

// x = m 2^exponent, where m is between the roots of 1/2 and of 2.
template <class V>
[[gnu::always_inline]] inline Mantissa<V> balanced_parts(const V& x) {
  using C = typename V::value_type;
  constexpr std::int32_t root_of_half = 0x3f3504f3;
  if constexpr (kHasParts<V>) {
    V m, exponent;
    asm("vgetmantps $0, %1, %0" : "=v"(m.v) : "v"(x.v));
    asm("vgetexpps %1, %0" : "=v"(exponent.v) : "v"(x.v));
    const auto is_large = V(2 * std::bit_cast<float>(root_of_half)) <= m;
    return {select(is_large, m * V(0.5f), m), select(is_large, exponent + V(1.0f), exponent)};
  } else {
    // Subnormal numbers are made normal first.
    constexpr bool is_double = std::is_same_v<C, double>;
    constexpr int shift = is_double ? 54 : 24;
    const auto is_small = x < V(std::numeric_limits<C>::min());
    const V normal = select(is_small, x * V(C(std::int64_t{1} << shift)), x);
    Mantissa<V> parts;
    if constexpr (is_double) {
      parts = mantissa(normal);
    } else {
      const BitsOf<V> k = difference_of_bits<V>(bits_of(normal), BitsOf<V>{} + root_of_half) >> 23;
      parts.m = from_bits<V>(difference_of_bits<V>(bits_of(normal), k << 23));
      parts.exponent = V(__builtin_convertvector(k, typename V::V));
    }
    parts.exponent = select(is_small, parts.exponent - V(shift), parts.exponent);
    return parts;
  }
}

template <class V>
[[gnu::always_inline]] inline LogarithmParts<V> logarithm_parts(const V& x) {
  using C = typename V::value_type;
  const Mantissa<V> parts = balanced_parts(x);
  const V f = parts.m - V(1);
  const V half_square = f * f * V(C(0.5));
  if constexpr (std::is_same_v<C, double>) {
    const V s = f / (f + V(2)), z = s * s;
    const V rest = s * (half_square + z * polynomial(z, kDoubleLogarithm)) - half_square;
    return {parts.exponent, f, rest};
  } else {
    return {parts.exponent, f, f * f * f * polynomial(f, kFloatLogarithm) - half_square};
  }
}

// `y` for positive numbers, with the exceptions of a logarithm.
template <class V>
[[gnu::always_inline]] inline V logarithm_of_any(const V& x, const V& y) {
  using C = typename V::value_type;
  if constexpr (kHasParts<V>) {
    // One instruction of AVX-512 replaces y by a kind of number for each kind of x: quiet and
    // signalling NaN, 0, 1, -inf, inf, negative, positive.
    enum : std::int32_t { kept = 0, nan_of_x = 2, nan = 3, minus_inf = 4, inf = 5 };
    constexpr std::int32_t kinds = nan_of_x | nan_of_x << 4 | minus_inf << 8 | kept << 12 |
                                   nan << 16 | inf << 20 | nan << 24 | kept << 28;
    V result = y;
    asm("vfixupimmps $0, %2, %1, %0" : "+v"(result.v) : "v"(x.v), "v"(BitsOf<V>{} + kinds));
    return result;
  }
  const V infinity(std::numeric_limits<C>::infinity());
  const V undefined(std::numeric_limits<C>::quiet_NaN());
  const V other = select(x == V(0), -infinity, undefined);  // NaN, too
  return select(x > V(0), select(x == infinity, infinity, y), other);
}

// exponent log(2) factor + log(1 + f) factor, where log(2) factor is given in two parts, of which
// products of the first with integers up to 2^11 are exact.
template <class V, class C>
[[gnu::always_inline]] inline V sum_of_parts(const LogarithmParts<V>& parts, C high, C low,
                                             C factor) {
  const V mantissa = parts.f * V(factor) + (parts.rest * V(factor) + parts.exponent * V(low));
  return parts.exponent * V(high) + mantissa;
}

}  // namespace renga::simd
