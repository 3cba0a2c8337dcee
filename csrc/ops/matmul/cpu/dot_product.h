// Dot products of adjoining numbers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "simd/vector.h"

namespace renga {

// The dot product of n floats, or numbers of 16 bits. Sums of blocks are added in float64.
template <class T>
float dot_product(const T* a, const T* b, std::int64_t n) {
  constexpr std::int64_t kBlock = 1 << 13;
  double total = 0;
  simd::dispatch_for<T>([&](auto target) __attribute__((always_inline)) {
    using L = simd::Vector<decltype(target), float>;
    constexpr int count = 8;  // as each addition waits for the one before
    for (std::int64_t begin = 0; begin < n; begin += kBlock) {
      const std::int64_t end = std::min(n, begin + kBlock);
      typename L::V sums[count] = {};
      std::int64_t i = begin;
      for (; i + count * L::width <= end; i += count * L::width) {
#pragma GCC unroll 8
        for (int v = 0; v < count; ++v) {
          sums[v] += L::load(a + i + v * L::width) * L::load(b + i + v * L::width);
        }
      }
      for (int v = 1; v < count; ++v) sums[0] += sums[v];
      total += static_cast<double>(L::sum(sums[0]));
      for (; i < end; ++i) total += static_cast<double>(float{a[i]} * float{b[i]});
    }
  });
  return static_cast<float>(total);
}

}  // namespace renga
