// Softmax of one row of numbers that lies in the cache.
#pragma once

#include <cmath>

#include "simd/blocked_loop.h"

namespace renga {

// Numbers side by side, which the compiler keeps in vectors.
inline constexpr std::int64_t kAbreast = 8;

template <class C>
C row_maximum(const C* x, std::int64_t n) {
  C top[kAbreast];
  std::fill_n(top, kAbreast, x[0]);
  std::int64_t i = 0;
  for (; i + kAbreast <= n; i += kAbreast) {
    for (std::int64_t k = 0; k < kAbreast; ++k) top[k] = x[i + k] > top[k] ? x[i + k] : top[k];
  }
  for (; i < n; ++i) top[0] = std::max(top[0], x[i]);
  return *std::max_element(top, top + kAbreast);
}

template <class C>
double row_sum(const C* x, std::int64_t n) {
  double sums[kAbreast] = {};
  std::int64_t i = 0;
  for (; i + kAbreast <= n; i += kAbreast) {
    for (std::int64_t k = 0; k < kAbreast; ++k) sums[k] += static_cast<double>(x[i + k]);
  }
  for (; i < n; ++i) sums[0] += static_cast<double>(x[i]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// x becomes its softmax, or the logarithm of it; `terms` is scratch memory for n numbers.
template <class C>
void softmax_row(C* x, std::int64_t n, bool log, C* terms) {
  const C top = row_maximum(x, n);
  simd::map_batches(x, x, n, [top](auto v) { return v - top; });
  simd::map_batches(x, terms, n, [](auto v) { return xsimd::exp(v); });
  const double total = row_sum(terms, n);
  if (log) {
    const C shift = static_cast<C>(std::log(total));
    simd::map_batches(x, x, n, [shift](auto v) { return v - shift; });
  } else {
    const C scale = static_cast<C>(1 / total);
    simd::map_batches(terms, x, n, [scale](auto v) { return v * scale; });
  }
}

}  // namespace renga
