#include <cstring>

#include "devices/rounding.h"
#include "ops/matmul/cpu/float_kernels.h"
#include "ops/matmul/cpu/panel_packing.h"
#include "ops/matmul/cpu/panel_tile.h"
#include "ops/matmul/cpu/parts.h"
#include "tensor/array.h"

namespace renga {
namespace {

using panels::panel_columns, panels::tile_rows;

// A block of b is at most so deep and so wide: 768 KB.
constexpr std::int64_t kDepth = 384, kColumns = 512;
// Copied rows of `a` are so far apart. A power of 2 would put them at the same place in the cache.
constexpr std::int64_t kRowStep = kDepth + 16;

// One tile of rows of c by all panels of a block. Meanwhile, the next rows of `a` are prefetched.
void multiply_tiles(panels::Tile tile, const float* next, std::int64_t next_step,
                    std::int64_t columns) {
  constexpr std::int64_t kLine = 16;  // floats of a line of the caches
  const std::int64_t width = panel_columns();
  const Addend addend = tile.addend;
  for (std::int64_t column = 0; column < columns; column += width, tile.c += width) {
    tile.columns = static_cast<int>(std::min(width, columns - column));
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      const float* const to = tile.c + r * tile.ldc;
      __builtin_prefetch(to, 1);
      __builtin_prefetch(to + tile.columns / 2, 1);
      __builtin_prefetch(to + tile.columns - 1, 1);
    }
    tile.addend = addend.from(0, column);
    const panels::Ahead ahead{
        .lines = 1, .next = next, .step = kLine, .depths = divide_up(tile.depth, kLine)};
    if (column / width + 1 < tile.rows) next += next_step;
    panels::multiply_tile(tile.rows, tile, ahead);
    tile.factors += width * tile.depth;
  }
}

template <class Weights>
void multiply_part(const LeftRows& a, const Weights& b, const Part& part, float* block, float* c,
                   const Addend& addend) {
  const std::int64_t width = panel_columns(), most = kColumns / width, height = tile_rows();
  alignas(64) float rows[panels::kMostRows<simd::Avx512> * kRowStep];
  const std::int64_t all = part.panel_end - part.panel, each = divide_up(all, divide_up(all, most));
  const std::int64_t each_depth = part_depth(b.k, kDepth);
  for (std::int64_t panel = part.panel; panel < part.panel_end; panel += each) {
    const std::int64_t end = std::min(panel + each, part.panel_end), column = panel * width;
    for (std::int64_t k = 0; k < b.k; k += each_depth) {
      const std::int64_t depth = std::min(each_depth, b.k - k);
      const Addend before = k == 0 ? addend : Addend{c, b.n};
      for (std::int64_t i = panel; i < end; ++i) {
        panels::pack_panel(b, i * width, k, k + depth, block + (i - panel) * depth * width);
      }
      for (std::int64_t row = part.row; row < part.row_end; row += height) {
        const std::int64_t count = std::min(height, part.row_end - row);
        const float* const from = a.data + row * a.row_step + k;
        for (std::int64_t r = 0; r < count; ++r) {
          std::memcpy(rows + r * kRowStep, from + r * a.row_step,
                      sizeof(float) * static_cast<std::size_t>(depth));
        }
        const panels::Tile tile{.a = rows,
                                .row_step = kRowStep,
                                .depth_step = 1,
                                .factors = block,
                                .factor_step = width,
                                .depth = depth,
                                .c = c + row * b.n + column,
                                .ldc = b.n,
                                .columns = 0,
                                .addend = before.from(row, column),
                                .rows = static_cast<int>(count)};
        const bool last = row + height >= part.row_end;
        multiply_tiles(tile, last ? from : from + height * a.row_step, a.row_step,
                       std::min(end * width, b.n) - column);
      }
    }
  }
}

template <class Weights>
void multiply_weights(const LeftRows& a, const Weights& b, float* c, const Addend& addend) {
  for_parts(a.rows, b.n, b.k, tile_rows(), panel_columns(), [&](const Part& part) {
    const Array block = empty({kDepth * kColumns}, Dtype::float32);
    multiply_part(a, b, part, block.as<float>(), c, addend);
  });
}

}  // namespace

void multiply_by_blocks(const LeftRows& a, const WeightRows& b, float* c, const Addend& addend) {
  multiply_weights(a, b, c, addend);
}
void multiply_by_blocks(const LeftRows& a, const WeightColumns& b, float* c, const Addend& addend) {
  multiply_weights(a, b, c, addend);
}

}  // namespace renga
