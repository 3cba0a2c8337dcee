// Panels of the right operand of a product: two vectors' columns of it, depth by depth.
#pragma once

#include <algorithm>
#include <cstring>

#include "ops/matmul/cpu/panel_tile.h"
#include "simd/transpose.h"

namespace renga::panels {

// Transposing prefetches so many floats ahead.
inline constexpr std::int64_t kPrefetch = 64;

// The square of a vector's rows of b from (row, k) on; zeros where there are fewer.
template <class Target>
[[gnu::always_inline]] inline void load_square(const WeightRows& b, std::int64_t row,
                                               std::int64_t k,
                                               Floats<Target> (&square)[Target::width]) {
  constexpr int width = Target::width;
  const float* const from = b.data + row * b.step + k;
  if (row + width <= b.n && k + width <= b.k) {
#pragma GCC unroll 16
    for (int i = 0; i < width; ++i) {
      __builtin_prefetch(from + i * b.step + kPrefetch, 0, 2);
      square[i] = load_floats<Target>(from + i * b.step);
    }
    return;
  }
  const std::int64_t rows = std::min<std::int64_t>(width, b.n - row);
  const auto bytes =
      sizeof(float) * static_cast<std::size_t>(std::min<std::int64_t>(width, b.k - k));
  for (int i = 0; i < width; ++i) {
    float part[width] = {};
    if (i < rows) std::memcpy(part, from + i * b.step, bytes);
    square[i] = load_floats<Target>(part);
  }
}

// The columns of bᵀ from `column` on, from depth `begin` to `end`; zeros where there are fewer.
template <class Target>
[[gnu::always_inline]] inline void pack_panel(const WeightRows& b, std::int64_t column,
                                              std::int64_t begin, std::int64_t end, float* to) {
  constexpr int width = Target::width;
  for (std::int64_t k = begin; k < end; k += width) {
    const auto depths = static_cast<int>(std::min<std::int64_t>(width, end - k));
    for (int v = 0; v < kVectors; ++v) {
      Floats<Target> square[width];
      load_square<Target>(b, column + v * width, k, square);
      simd::transpose<Target>(square);
      for (int i = 0; i < depths; ++i) {
        store_floats<Target>(square[i], to + i * kPanelColumns<Target> + v * width);
      }
    }
    to += width * kPanelColumns<Target>;
  }
}

}  // namespace renga::panels
