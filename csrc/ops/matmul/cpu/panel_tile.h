// The micro-kernel of products of some tens of rows: tiles of them times a panel, which is two
// vectors' columns of the other operand.
#pragma once

#include <cstdint>
#include <limits>

#include "ops/matmul/cpu/operands.h"
#include "simd/float_vector.h"

namespace renga::panels {

using simd::Floats, simd::load_floats, simd::store_floats;

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

// What the next parts or panels read is prefetched into the second-level cache: at each of the
// first depths, so many lines, of which the second and third begin so many numbers further. Each
// line should be prefetched once, as a load of a vector takes no longer.
struct Ahead {
  int lines = 0;  // at most 3
  const float* next = nullptr;
  std::int64_t step = 0, second = 0, third = 0;
  std::int64_t depths = std::numeric_limits<std::int64_t>::max();
};

// Calls prefetch(k) at the first prefetch.depths(tile.depth) depths.
template <class Target, int Rows, int Vectors, class Prefetch>
[[gnu::always_inline]] inline void multiply_tile(const Tile tile, Prefetch prefetch) {
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

// The columns of a panel on this machine, those of a vector, and the most rows of a tile.
inline std::int64_t vector_columns() {
  return simd::has_avx512() ? simd::Avx512::width : simd::Avx2::width;
}
inline std::int64_t panel_columns() { return kVectors * vector_columns(); }
inline std::int64_t tile_rows() {
  return simd::has_avx512() ? kMostRows<simd::Avx512> : kMostRows<simd::Avx2>;
}

// A tile of so many rows, by the best code for them on this machine.
void multiply_tile(std::int64_t rows, const Tile& tile, const Ahead& ahead);

}  // namespace renga::panels
