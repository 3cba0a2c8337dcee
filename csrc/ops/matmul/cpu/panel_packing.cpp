#include "ops/matmul/cpu/panel_packing.h"

#include <algorithm>
#include <cstring>

#include "ops/matmul/cpu/panel_tile.h"
#include "simd/transpose.h"
#include "tensor/streaming.cpu.h"

namespace renga::panels {
namespace {

// Transposing prefetches so many floats ahead.
constexpr std::int64_t kPrefetch = 64;

// Stores a vector of a panel.
template <class Target>
[[gnu::always_inline]] inline void store_packed(const Floats<Target>& v, bool streams, float* to) {
  streams ? stream(v, to) : store_floats<Target>(v, to);
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
template <class Target>
[[gnu::always_inline]] inline void pack(const WeightRows& b, std::int64_t column,
                                        std::int64_t begin, std::int64_t end, bool streams,
                                        float* to) {
  constexpr int width = Target::width;
  for (std::int64_t k = begin; k < end; k += width) {
    const auto depths = static_cast<int>(std::min<std::int64_t>(width, end - k));
    // At the end of a panel, numbers are prefetched from where the next one begins.
    const bool wraps = k + kPrefetch >= end;
    const std::int64_t ahead =
        wraps ? kPanelColumns<Target> * b.step + kPrefetch - (end - begin) : kPrefetch;
    for (int v = 0; v < kVectors; ++v) {
      Floats<Target> square[width];
      load_square<Target>(b, column + v * width, k, ahead, square);
      simd::transpose<Target>(square);
      for (int i = 0; i < depths; ++i) {
        store_packed<Target>(square[i], streams, to + i * kPanelColumns<Target> + v * width);
      }
    }
    to += width * kPanelColumns<Target>;
  }
}

// The columns of b from `column` on, from depth `begin` to `end`; zeros where there are fewer.
template <class Target>
[[gnu::always_inline]] inline void pack(const WeightColumns& b, std::int64_t column,
                                        std::int64_t begin, std::int64_t end, bool streams,
                                        float* to) {
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
      store_packed<Target>(load_floats<Target>(from + v * Target::width), streams,
                           to + v * Target::width);
    }
  }
}

// PackingOrder says how whole panels are packed: so many of them side by side, so many depths at a
// time. Rows are read to their ends; columns are read by a part of each row that is long enough to
// be read fast from memory.
struct PackingOrder {
  std::int64_t panels, depths;
};
PackingOrder packing_order(const WeightRows& b) { return {1, b.k}; }
PackingOrder packing_order(const WeightColumns&) { return {8, 4}; }

template <class Weights>
void pack_all(const Weights& b, std::int64_t first, std::int64_t last, bool streams, float* to) {
  const PackingOrder order = packing_order(b);
  simd::dispatch_for<float>([ =, &b ](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    constexpr std::int64_t columns = kPanelColumns<Target>;
    for (std::int64_t side = first; side < last; side += order.panels) {
      for (std::int64_t k = 0; k < b.k; k += order.depths) {
        const std::int64_t end = std::min(k + order.depths, b.k);
        for (std::int64_t i = side; i < std::min(side + order.panels, last); ++i) {
          pack<Target>(b, i * columns, k, end, streams, to + (i * b.k + k) * columns);
        }
      }
    }
  });
  if (streams) finish_streaming();
}

template <class Weights>
void pack_part(const Weights& b, std::int64_t column, std::int64_t begin, std::int64_t end,
               float* to) {
  simd::dispatch_for<float>([ =, &b ](auto target) __attribute__((always_inline)) {
    pack<decltype(target)>(b, column, begin, end, false, to);
  });
}

}  // namespace

void pack_panel(const WeightRows& b, std::int64_t column, std::int64_t begin, std::int64_t end,
                float* to) {
  pack_part(b, column, begin, end, to);
}
void pack_panel(const WeightColumns& b, std::int64_t column, std::int64_t begin, std::int64_t end,
                float* to) {
  pack_part(b, column, begin, end, to);
}

void pack_panels(const WeightRows& b, std::int64_t first, std::int64_t last, bool streams,
                 float* to) {
  pack_all(b, first, last, streams, to);
}
void pack_panels(const WeightColumns& b, std::int64_t first, std::int64_t last, bool streams,
                 float* to) {
  pack_all(b, first, last, streams, to);
}

}  // namespace renga::panels
