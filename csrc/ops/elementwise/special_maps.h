// The complement of the error function, its inverses, and those of the normal distribution: of
// single numbers here, and of vectors as simd/special.h has them.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include "devices/host_device.h"
#include "ops/elementwise/elementwise.h"

namespace renga::maps {

// The numbers in a vector.
template <class V>
struct ElementOf {
  using type = typename V::value_type;
};
template <class C>
requires std::is_arithmetic_v<C>
struct ElementOf<C> {
  using type = C;
};
template <class V>
using element_of = typename ElementOf<V>::type;

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
  } else {
    const auto of_number = [](element_of<V> u) { return special_of_number<map>(u); };
    if constexpr (map == Unary::erfc) return vector_erfc(v, of_number);
    if constexpr (map == Unary::ndtr) return vector_ndtr(v, of_number);
    if constexpr (map == Unary::erfinv) return vector_erfinv(v, of_number);
    if constexpr (map == Unary::erfcinv) return vector_erfcinv(v, of_number);
    if constexpr (map == Unary::ndtri) return vector_ndtri(v, of_number);
  }
}

}  // namespace renga::maps
