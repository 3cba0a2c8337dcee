// Element-wise maps of integers: plain loops that the compiler vectorizes. They wrap around as
// NumPy's do.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/elementwise/elementwise.h"

namespace renga::integers {

// Signed overflow is undefined in C++, so arithmetic is done in an unsigned type.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T>
T negative(T v) {
  return T(Wrapping<T>(0) - Wrapping<T>(v));
}

template <class T>
T product(T u, T v) {
  return T(Wrapping<T>(u) * Wrapping<T>(v));
}

// `n` is at least 0.
template <class T>
T power(T x, T n) {
  T y = 1;
  for (; n > 0; n = T(n / 2), x = product(x, x)) {
    if (n % 2) y = product(y, x);
  }
  return y;
}

// Faults of integer divisions in all blocks of a call.
struct DivisionFaults {
  std::atomic<bool> by_zero{false}, overflow{false};

  void report() const {
    if (arithmetic_warning == nullptr) return;
    if (by_zero) arithmetic_warning("divide by zero encountered in floor_divide");
    if (overflow) arithmetic_warning("overflow encountered in floor_divide");
  }
};

template <class T>
void floor_divide(const T* a, const T* b, T* y, std::int64_t n, DivisionFaults& faults) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T u = a[i], v = b[i];
    if (v == 0) {
      faults.by_zero = true;
      y[i] = 0;
    } else if (std::is_signed_v<T> && v == T(-1)) {
      // The processor traps where the quotient of the least integer overflows.
      if (u == std::numeric_limits<T>::min()) faults.overflow = true;
      y[i] = negative(u);
    } else {
      const T quotient = T(u / v);
      y[i] = (u % v != 0 && (u < 0) != (v < 0)) ? T(quotient - 1) : quotient;
    }
  }
}

template <class T>
void unary(Unary map, const T* x, T* y, std::int64_t n) {
  const auto loop = [&](auto f) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = T(f(x[i]));
  };
  switch (map) {
    case Unary::negative:
      return loop([](T v) { return negative(v); });
    case Unary::absolute:
      return loop([](T v) { return v < 0 ? negative(v) : v; });
    case Unary::sign:
      return loop([](T v) { return (v > 0) - (v < 0); });
    case Unary::square:
      return loop([](T v) { return product(v, v); });
    default:  // floor and ceil
      return loop([](T v) { return v; });
  }
}

template <class T>
void binary(Binary map, const T* a, const T* b, T* y, std::int64_t n, DivisionFaults& faults) {
  using W = Wrapping<T>;
  const auto loop = [&](auto f) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = T(f(a[i], b[i]));
  };
  switch (map) {
    case Binary::add:
      return loop([](T u, T v) { return W(u) + W(v); });
    case Binary::subtract:
      return loop([](T u, T v) { return W(u) - W(v); });
    case Binary::multiply:
      return loop([](T u, T v) { return product(u, v); });
    case Binary::power:
      return loop([](T u, T v) { return power(u, v); });
    case Binary::maximum:
      return loop([](T u, T v) { return std::max(u, v); });
    case Binary::minimum:
      return loop([](T u, T v) { return std::min(u, v); });
    case Binary::greater_equal:
      return loop([](T u, T v) { return u >= v; });
    case Binary::less_equal:
      return loop([](T u, T v) { return u <= v; });
    default:
      return floor_divide(a, b, y, n, faults);
  }
}

}  // namespace renga::integers
