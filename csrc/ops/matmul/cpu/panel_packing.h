// Panels of the right operand of a product: two vectors' columns of it, depth by depth.
#pragma once

#include <algorithm>
#include <cstring>

#include "ops/matmul/cpu/panel_tile.h"
#include "simd/transpose.h"
#include "tensor/streaming.cpu.h"

namespace renga::panels {

// Transposing prefetches so many floats ahead.
inline constexpr std::int64_t kPrefetch = 64;

// Stores a vector of a panel, past the caches if it `streams`: then panels begin at lines of them.
template <class Target, bool streams>
[[gnu::always_inline]] inline void store_packed(const Floats<Target>& v, float* to) {
  if constexpr (streams) {
    stream(v, to);
  } else {
    store_floats<Target>(v, to);
  }
}

// The square of a vector's rows of b from (row, k) on; zeros where there are fewer. Prefetches that
// at `ahead` floats.
template <class Target>
[[gnu::always_inline]] inline void load_square(const WeightRows& b, std::int64_t row,
                                               std::int64_t k, std::int64_t ahead,
                                               Floats<Target> (&square)[Target::width]) {
  constexpr int width = Target::width;
  const float* const from = b.data + row * b.step + k;
  if (row + width <= b.n && k + width <= b.k) {
#pragma GCC unroll 16
    for (int i = 0; i < width; ++i) {
      __builtin_prefetch(from + i * b.step + ahead, 0, 2);
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
template <class Target, bool streams = false>
[[gnu::always_inline]] inline void pack_panel(const WeightRows& b, std::int64_t column,
                                              std::int64_t begin, std::int64_t end, float* to) {
  constexpr int width = Target::width;
  for (std::int64_t k = begin; k < end; k += width) {
    const auto depths = static_cast<int>(std::min<std::int64_t>(width, end - k));
    // At the end of a panel, where the next one begins.
    const bool wraps = k + kPrefetch >= end;
    const std::int64_t ahead =
        wraps ? kPanelColumns<Target> * b.step + kPrefetch - (end - begin) : kPrefetch;
    for (int v = 0; v < kVectors; ++v) {
      Floats<Target> square[width];
      load_square<Target>(b, column + v * width, k, ahead, square);
      simd::transpose<Target>(square);
      for (int i = 0; i < depths; ++i) {
        store_packed<Target, streams>(square[i], to + i * kPanelColumns<Target> + v * width);
      }
    }
    to += width * kPanelColumns<Target>;
  }
}

// The columns of b from `column` on, from depth `begin` to `end`; zeros where there are fewer.
template <class Target, bool streams = false>
[[gnu::always_inline]] inline void pack_panel(const WeightColumns& b, std::int64_t column,
                                              std::int64_t begin, std::int64_t end, float* to) {
  constexpr std::int64_t width = kPanelColumns<Target>, kRowsAhead = 16;
  const std::int64_t columns = std::min(width, b.n - column);
  for (std::int64_t k = begin; k < end; ++k, to += width) {
    const float* const from = b.data + k * b.step + column;
    const float* const ahead = from + kRowsAhead * b.step;
    __builtin_prefetch(ahead, 0, 2);
    __builtin_prefetch(ahead + columns / 2, 0, 2);
    __builtin_prefetch(ahead + columns - 1, 0, 2);
    if (columns < width) {
      std::copy_n(from, columns, to);
      std::fill_n(to + columns, width - columns, 0.0f);
      continue;
    }
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      store_packed<Target, streams>(load_floats<Target>(from + v * Target::width),
                                    to + v * Target::width);
    }
  }
}

}  // namespace renga::panels
