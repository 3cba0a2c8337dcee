// The formulas of element-wise functions of integers, which wrap around as NumPy's do.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "devices/host_device.h"
#include "ops/elementwise/elementwise.h"

namespace renga::integers {

// Signed overflow is undefined in C++, so arithmetic is done in an unsigned type.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

// Integers have the functions up to these.
inline constexpr Unary kLastUnary = Unary::trunc;
inline constexpr Binary kLastBinary = Binary::less_equal;

template <class T>
RENGA_HOST_DEVICE bool is_below_zero(T v) {
  if constexpr (std::is_signed_v<T>) return v < 0;
  return false;
}

template <class T>
RENGA_HOST_DEVICE T negative(T v) {
  return T(Wrapping<T>(0) - Wrapping<T>(v));
}

template <class T>
RENGA_HOST_DEVICE T product(T u, T v) {
  return T(Wrapping<T>(u) * Wrapping<T>(v));
}

// `n` is at least 0.
template <class T>
RENGA_HOST_DEVICE T power(T x, T n) {
  T y = 1;
  for (; n > 0; n = T(n / 2), x = product(x, x)) {
    if (n % 2) y = product(y, x);
  }
  return y;
}

enum class Fault : std::uint8_t { none, by_zero, overflow };

template <class T>
RENGA_HOST_DEVICE T floor_divide(T u, T v, Fault& fault) {
  if (v == 0) {
    fault = Fault::by_zero;
    return 0;
  }
  if (std::is_signed_v<T> && v == T(-1)) {
    // The processor traps where the quotient of the least integer overflows.
    if (u == std::numeric_limits<T>::min()) fault = Fault::overflow;
    return negative(u);
  }
  const T quotient = T(u / v);
  return (u % v != 0 && is_below_zero(u) != is_below_zero(v)) ? T(quotient - 1) : quotient;
}

template <Unary map, class T>
RENGA_HOST_DEVICE T unary(T v) {
  if constexpr (map == Unary::negative) return negative(v);
  if constexpr (map == Unary::absolute) return is_below_zero(v) ? negative(v) : v;
  if constexpr (map == Unary::sign) return T((v > 0) - is_below_zero(v));
  if constexpr (map == Unary::square) return product(v, v);
  if constexpr (map == Unary::floor || map == Unary::ceil || map == Unary::trunc) return v;
}

// All but floor_divide.
template <Binary map, class T>
RENGA_HOST_DEVICE T binary(T u, T v) {
  using W = Wrapping<T>;
  if constexpr (map == Binary::add) return T(W(u) + W(v));
  if constexpr (map == Binary::subtract) return T(W(u) - W(v));
  if constexpr (map == Binary::multiply) return product(u, v);
  if constexpr (map == Binary::power) return power(u, v);
  if constexpr (map == Binary::maximum) return u < v ? v : u;
  if constexpr (map == Binary::minimum) return v < u ? v : u;
  if constexpr (map == Binary::greater_equal) return T(u >= v);
  if constexpr (map == Binary::less_equal) return T(u <= v);
  return T(0);  // division of floats, which integers do not have
}

}  // namespace renga::integers
