#include "ops/matmul/cpu/weight_panels.h"

#include <algorithm>
#include <cstring>

#include "devices/parallel.h"
#include "simd/float_vector.h"
#include "simd/transpose.h"

namespace renga {
namespace {

using simd::dispatch, simd::Floats, simd::load_floats, simd::store_floats;

// A panel has the rows of b that make two vectors: element (j, k) is at k * kPanelRows + j.
constexpr int kVectors = 2;
template <class Target>
inline constexpr int kPanelRows = kVectors* Target::width;
// The sums of so many rows of `a` stay in registers.
template <class Target>
inline constexpr int kMostRows = Target::width == 16 ? 12 : 6;
// Long sums are made of short ones, for the sake of rounding.
constexpr std::int64_t kDepth = 256;

// The square of a vector's rows of b from (row, k) on; zeros where there are fewer.
template <class Target>
[[gnu::always_inline]] inline void load_square(const WeightRows& b, std::int64_t row,
                                               std::int64_t k,
                                               Floats<Target> (&square)[Target::width]) {
  constexpr int width = Target::width;
  const float* const from = b.data + row * b.step + k;
  if (row + width <= b.n && k + width <= b.k) {
#pragma GCC unroll 16
    for (int i = 0; i < width; ++i) square[i] = load_floats<Target>(from + i * b.step);
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

// The rows of b from `row` on, from depth `begin` to `end`.
template <class Target>
[[gnu::always_inline]] inline void pack_panel(const WeightRows& b, std::int64_t row,
                                              std::int64_t begin, std::int64_t end, float* to) {
  constexpr int width = Target::width;
  for (std::int64_t k = begin; k < end; k += width) {
    const auto depths = static_cast<int>(std::min<std::int64_t>(width, end - k));
    for (int v = 0; v < kVectors; ++v) {
      Floats<Target> square[width];
      load_square<Target>(b, row + v * width, k, square);
      simd::transpose<Target>(square);
      for (int i = 0; i < depths; ++i) {
        store_floats<Target>(square[i], to + i * kPanelRows<Target> + v * width);
      }
    }
    to += width * kPanelRows<Target>;
  }
}

// Rows of `a` times so many depths of a panel.
struct Tile {
  const float* a;
  std::int64_t row_step;
  const float* factors;
  std::int64_t depth;
  const float* next;  // what the next parts or panels read; each depth prefetches a number
  std::int64_t next_step;
  float* c;
  std::int64_t ldc;
  int columns;  // of c
  bool accumulate;
};

template <class Target, int Rows>
[[gnu::always_inline]] inline void multiply_tile(const Tile& tile) {
  constexpr int width = Target::width;
  Floats<Target> sums[Rows][kVectors] = {};
  // Addresses of three rows by one pointer: there are not enough registers for one each.
  constexpr int kPointers = (Rows + 2) / 3;
  const float* rows[kPointers];
#pragma GCC unroll 4
  for (int i = 0; i < kPointers; ++i) rows[i] = tile.a + 3 * i * tile.row_step;
  const float *panel = tile.factors, *next = tile.next;
  for (std::int64_t k = 0; k < tile.depth; ++k, panel += kPanelRows<Target>) {
    __builtin_prefetch(next, 0, 2);
    next += tile.next_step;
    Floats<Target> factors[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) factors[v] = load_floats<Target>(panel + v * width);
#pragma GCC unroll 12
    for (int r = 0; r < Rows; ++r) {
      const float factor = rows[r / 3][r % 3 * tile.row_step];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[r][v] += factor * factors[v];
    }
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i) ++rows[i];
  }
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
    float* const to = tile.c + r * tile.ldc;
    float totals[kPanelRows<Target>];
    const bool whole = tile.columns == kPanelRows<Target>;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      if (whole && tile.accumulate) sums[r][v] += load_floats<Target>(to + v * width);
      store_floats<Target>(sums[r][v], (whole ? to : totals) + v * width);
    }
    if (whole) continue;
    for (int j = 0; j < tile.columns; ++j) to[j] = tile.accumulate ? to[j] + totals[j] : totals[j];
  }
}

template <class Target, int Rows>
[[gnu::always_inline]] inline void multiply_rows(std::int64_t rows, const Tile& tile) {
  if constexpr (Rows > 1) {
    if (rows < Rows) return multiply_rows<Target, Rows - 1>(rows, tile);
  }
  multiply_tile<Target, Rows>(tile);
}

// c (+)= a times the panel of b from `row` on; without the panel, its parts are packed in
// `scratch`.
template <class Target>
[[gnu::always_inline]] inline void multiply_panel(const FewRows& a, const WeightRows& b,
                                                  std::int64_t row, const float* panel,
                                                  float* scratch, float* c, bool accumulate) {
  constexpr int most = kMostRows<Target>, width = kPanelRows<Target>;
  const auto columns = static_cast<int>(std::min<std::int64_t>(width, b.n - row));
  const std::int64_t tiles = (a.rows + most - 1) / most;
  for (std::int64_t k = 0; k < b.k; k += kDepth) {
    const std::int64_t depth = std::min(kDepth, b.k - k);
    Tile tile{nullptr, a.row_step, scratch, depth,   scratch,
              0,       nullptr,    b.n,     columns, accumulate || k > 0};
    std::int64_t ahead = 0;
    if (panel == nullptr) {
      pack_panel<Target>(b, row, k, k + depth, scratch);
    } else {
      // The tiles prefetch the same part of the next panel, each as much.
      tile.factors = panel + k * width;
      tile.next = tile.factors + b.k * width;
      tile.next_step = width / tiles;
      ahead = depth * tile.next_step;
    }
    for (std::int64_t t = 0, first = 0; t < tiles; ++t, tile.next += ahead) {
      const std::int64_t rows = (a.rows - first) / (tiles - t);
      tile.a = a.data + first * a.row_step + k;
      tile.c = c + first * b.n + row;
      multiply_rows<Target, most>(rows, tile);
      first += rows;
    }
  }
}

// The rows of `a`, contiguous.
Array contiguous_rows(const FewRows& a, std::int64_t k) {
  const Array rows = empty({a.rows, k}, Dtype::float32);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < k; ++j) {
      rows.as<float>()[i * k + j] = a.data[i * a.row_step + j * a.depth_step];
    }
  }
  return rows;
}

// The rows of a panel on this machine.
std::int64_t panel_rows() {
  std::int64_t rows = 0;
  dispatch<float>([&](auto target)
                      __attribute__((always_inline)) { rows = kPanelRows<decltype(target)>; });
  return rows;
}

// Calls body(first, last) with ranges of panels that cover n columns of c, on all threads. `cost`
// is that of a column.
template <class Body>
void for_panels(std::int64_t n, std::int64_t cost, const Body& body) {
  const std::int64_t each = panel_rows();
  parallel_for(n, cost, [&](std::int64_t begin, std::int64_t end) {
    body((begin + each - 1) / each, (end + each - 1) / each);
  });
}

}  // namespace

Array pack_panels(const WeightRows& b) {
  const std::int64_t rows = panel_rows(), each = rows * b.k;
  const Array panels = empty({(b.n + rows - 1) / rows, each}, Dtype::float32);
  for_panels(b.n, b.k, [&](std::int64_t first, std::int64_t last) {
    dispatch<float>([&](auto target) __attribute__((always_inline)) {
      for (std::int64_t i = first; i < last; ++i) {
        pack_panel<decltype(target)>(b, i * rows, 0, b.k, panels.as<float>() + i * each);
      }
    });
  });
  return panels;
}

void multiply_by_panels(const FewRows& a, const WeightRows& b, const Array& panels, float* c,
                        bool accumulate) {
  const Array copied = a.depth_step == 1 ? Array() : contiguous_rows(a, b.k);
  const FewRows left = copied.defined() ? FewRows{copied.as<float>(), b.k, 1, a.rows} : a;
  const std::int64_t rows = panel_rows();
  for_panels(b.n, b.k * a.rows / 8, [&](std::int64_t first, std::int64_t last) {
    const Array scratch = empty({rows * kDepth}, Dtype::float32);
    dispatch<float>([&](auto target) __attribute__((always_inline)) {
      for (std::int64_t i = first; i < last; ++i) {
        const float* const panel = panels.defined() ? panels.as<float>() + i * rows * b.k : nullptr;
        multiply_panel<decltype(target)>(left, b, i * rows, panel, scratch.as<float>(), c,
                                         accumulate);
      }
    });
  });
}

}  // namespace renga
