// The micro-kernel of products of some tens of rows: tiles of them times a panel, which is two
// vectors' columns of the other operand.
#pragma once

#include <cstdint>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "ops/matmul/cpu/operands.h"
#include "simd/float_vector.h"

namespace renga::panels {

using simd::dispatch, simd::Floats, simd::load_floats, simd::store_floats;

// A panel is so many columns wide.
inline constexpr int kVectors = 2;
template <class Target>
inline constexpr int kPanelColumns = kVectors* Target::width;
// The sums of so many rows of `a` stay in registers.
template <class Target>
inline constexpr int kMostRows = Target::width == 16 ? 12 : 6;

// Rows of `a` times so many depths of a panel.
struct Tile {
  const float* a;
  std::int64_t row_step, depth_step;  // of a
  const float* factors;               // that of column j at depth k is at k * factor_step + j
  std::int64_t factor_step, depth;
  float* c;
  std::int64_t ldc;
  int columns;  // of c
  Addend addend;
  int rows = kMostRows<simd::Avx512>;  // of c, if fewer than of the tile
};

// What the next parts or panels read: each depth prefetches a number, and two after it.
struct StridedPrefetch {
  const float* next = nullptr;
  std::int64_t step = 0, second = 0, third = 0;

  static std::int64_t depths(std::int64_t all) { return all; }
  [[gnu::always_inline]] void operator()(std::int64_t) {
    __builtin_prefetch(next, 0, 2);
    __builtin_prefetch(next + second, 0, 2);
    __builtin_prefetch(next + third, 0, 2);
    next += step;
  }
};

// Calls prefetch(k) at the first prefetch.depths(tile.depth) depths.
template <class Target, int Rows, int Vectors, class Prefetch>
[[gnu::always_inline]] inline void multiply_tile(const Tile& tile, Prefetch prefetch) {
  constexpr int width = Target::width;
  Floats<Target> sums[Rows][Vectors] = {};
  // Addresses of three rows by one pointer: there are not enough registers for one each.
  constexpr int kPointers = (Rows + 2) / 3;
  const float* rows[kPointers];
#pragma GCC unroll 4
  for (int i = 0; i < kPointers; ++i) rows[i] = tile.a + 3 * i * tile.row_step;
  const float* panel = tile.factors;
  const auto multiply_depth = [&]() __attribute__((always_inline)) {
    Floats<Target> factors[Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) factors[v] = load_floats<Target>(panel + v * width);
#pragma GCC unroll 12
    for (int r = 0; r < Rows; ++r) {
      const float factor = rows[r / 3][r % 3 * tile.row_step];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) sums[r][v] += factor * factors[v];
    }
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i) rows[i] += tile.depth_step;
    panel += tile.factor_step;
  };
  const std::int64_t busy = prefetch.depths(tile.depth);
  for (std::int64_t k = 0; k < busy; ++k) {
    prefetch(k);
    multiply_depth();
  }
  for (std::int64_t k = busy; k < tile.depth; ++k) multiply_depth();
  const float* addend = tile.addend.data;
  const bool adds = addend != nullptr, whole = tile.columns == Vectors * width;
  float* to = tile.c;
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r, to += tile.ldc, addend += tile.addend.row_step) {
    if (r >= tile.rows) break;
    float totals[Vectors * width];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      if (whole && adds) sums[r][v] += load_floats<Target>(addend + v * width);
      store_floats<Target>(sums[r][v], (whole ? to : totals) + v * width);
    }
    if (whole) continue;
    for (int j = 0; j < tile.columns; ++j) to[j] = adds ? addend[j] + totals[j] : totals[j];
  }
}

// A tile of so many rows.
template <class Target, int Rows, int Vectors, class Prefetch>
[[gnu::always_inline]] inline void multiply_rows(std::int64_t rows, const Tile& tile,
                                                 Prefetch prefetch) {
  if constexpr (Rows > 1) {
    if (rows < Rows) return multiply_rows<Target, Rows - 1, Vectors>(rows, tile, prefetch);
  }
  multiply_tile<Target, Rows, Vectors>(tile, prefetch);
}

// A tile of one, two or three thirds of the most rows, of which the first `tile.rows` are rows of
// c: with as many kinds of tiles as rows, the compiler runs out of registers in large functions.
template <class Target, int Vectors, class Prefetch>
[[gnu::always_inline]] inline void multiply_thirds(const Tile& tile, Prefetch prefetch) {
  constexpr int third = kMostRows<Target> / 3;
  if (tile.rows > 2 * third) {
    multiply_tile<Target, 3 * third, Vectors>(tile, prefetch);
  } else if (tile.rows > third) {
    multiply_tile<Target, 2 * third, Vectors>(tile, prefetch);
  } else {
    multiply_tile<Target, third, Vectors>(tile, prefetch);
  }
}

template <class Target>
std::int64_t tile_count(std::int64_t rows) {
  return divide_up(rows, kMostRows<Target>);
}

// All rows of a product times a part of a panel, tile by tile.
struct PanelPart {
  const float* factors = nullptr;
  std::int64_t factor_step = 0;
  std::int64_t first = 0, depth = 0;  // of the product
  std::int64_t column = 0, columns = 0;
  // Of the first tile; `ahead` further for each of the others.
  StridedPrefetch prefetch = {};
  std::int64_t ahead = 0;
};

// c = the product + addend; c (rows, n) is contiguous.
template <class Target>
[[gnu::always_inline]] inline void multiply_part(const LeftRows& a, const PanelPart& part, float* c,
                                                 std::int64_t n, const Addend& addend) {
  const std::int64_t tiles = tile_count<Target>(a.rows);
  Tile tile{.a = nullptr,
            .row_step = a.row_step,
            .depth_step = a.depth_step,
            .factors = part.factors,
            .factor_step = part.factor_step,
            .depth = part.depth,
            .c = nullptr,
            .ldc = n,
            .columns = static_cast<int>(part.columns),
            .addend = {}};
  StridedPrefetch prefetch = part.prefetch;
  for (std::int64_t t = 0, row = 0; t < tiles; ++t, prefetch.next += part.ahead) {
    const std::int64_t rows = (a.rows - row) / (tiles - t);
    tile.a = a.data + row * a.row_step + part.first * a.depth_step;
    tile.c = c + row * n + part.column;
    tile.addend = addend.from(row, part.column);
    if (part.columns <= Target::width) {
      multiply_rows<Target, kMostRows<Target>, 1>(rows, tile, prefetch);
    } else {
      multiply_rows<Target, kMostRows<Target>, kVectors>(rows, tile, prefetch);
    }
    row += rows;
  }
}

// The columns of a panel on this machine, and the most rows of a tile.
inline std::int64_t panel_columns() {
  std::int64_t columns = 0;
  dispatch<float>([&](auto target) __attribute__((always_inline)) {
    columns = kPanelColumns<decltype(target)>;
  });
  return columns;
}
inline std::int64_t tile_rows() {
  std::int64_t rows = 0;
  dispatch<float>([&](auto target)
                      __attribute__((always_inline)) { rows = kMostRows<decltype(target)>; });
  return rows;
}

}  // namespace renga::panels
