// Softmax of a row of numbers in cache.
#pragma once

#include <cmath>

#include "simd/blocked_loop.h"

namespace renga {

// Independent partial results, which the compiler vectorizes.
inline constexpr std::int64_t kPartials = 8;

template <class C>
C row_maximum(const C* x, std::int64_t n) {
  C top[kPartials];
  std::fill_n(top, kPartials, x[0]);
  std::int64_t i = 0;
  for (; i + kPartials <= n; i += kPartials) {
    for (std::int64_t k = 0; k < kPartials; ++k) top[k] = x[i + k] > top[k] ? x[i + k] : top[k];
  }
  for (; i < n; ++i) top[0] = std::max(top[0], x[i]);
  return *std::max_element(top, top + kPartials);
}

template <class C>
double row_sum(const C* x, std::int64_t n) {
  double sums[kPartials] = {};
  std::int64_t i = 0;
  for (; i + kPartials <= n; i += kPartials) {
    for (std::int64_t k = 0; k < kPartials; ++k) sums[k] += static_cast<double>(x[i + k]);
  }
  for (; i < n; ++i) sums[0] += static_cast<double>(x[i]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// log softmax(x) = (x - top) - shift, where shift is the logarithm of the sum of e^(x - top).
template <class C>
struct SoftmaxNormalizer {
  C top, shift;
};
// `terms` is a buffer for n numbers; it may be x.
template <class C>
SoftmaxNormalizer<C> softmax_normalizer(const C* x, std::int64_t n, C* terms) {
  const C top = row_maximum(x, n);
  simd::map_batches(x, terms, n, [top](auto v) { return xsimd::exp(v - top); });
  return {top, static_cast<C>(std::log(row_sum(terms, n)))};
}

// Replaces x by its softmax, or the logarithm of it. `terms` is a buffer for n numbers.
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
