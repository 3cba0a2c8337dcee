#include "ops/matmul/cpu/weight_blocks.h"

#include <cstring>

#include "devices/rounding.h"
#include "ops/matmul/cpu/panel_packing.h"
#include "ops/matmul/cpu/parts.h"
#include "tensor/array.h"

namespace renga {
namespace {

using panels::kMostRows, panels::kPanelColumns, panels::pack_panel;
using simd::dispatch;

// A block of b is at most so deep and so wide: 768 KB.
constexpr std::int64_t kDepth = 384, kColumns = 512;
// Copied rows of `a` are so far apart. A power of 2 would put them at the same place in the cache.
constexpr std::int64_t kRowStep = kDepth + 16;

// One tile of rows of c by all panels of a block. Meanwhile, the next rows of `a` are prefetched.
template <class Target>
[[gnu::always_inline]] inline void multiply_tiles(panels::Tile tile, const float* next,
                                                  std::int64_t next_step, std::int64_t columns) {
  constexpr std::int64_t width = kPanelColumns<Target>;
  const Addend addend = tile.addend;
  for (std::int64_t column = 0; column < columns; column += width, tile.c += width) {
    tile.columns = static_cast<int>(std::min(width, columns - column));
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      const float* const to = tile.c + r * tile.ldc;
      __builtin_prefetch(to, 1);
      __builtin_prefetch(to + tile.columns / 2, 1);
      __builtin_prefetch(to + tile.columns - 1, 1);
    }
    const panels::StridedPrefetch prefetch{.next = next, .step = 1};
    tile.addend = addend.from(0, column);
    if (column / width + 1 < tile.rows) next += next_step;
    if (tile.columns > Target::width) {
      panels::multiply_thirds<Target, panels::kVectors>(tile, prefetch);
    } else {
      panels::multiply_thirds<Target, 1>(tile, prefetch);
    }
    tile.factors += width * tile.depth;
  }
}

template <class Target>
[[gnu::always_inline]] inline void multiply_blocks(const LeftRows& a, const WeightRows& b,
                                                   const Part& part, float* block, float* c,
                                                   const Addend& addend) {
  constexpr std::int64_t width = kPanelColumns<Target>, most = kColumns / width;
  constexpr std::int64_t height = kMostRows<Target>;
  alignas(64) float rows[height * kRowStep] = {};  // a tile may have more rows than there are
  const std::int64_t all = part.panel_end - part.panel, each = divide_up(all, divide_up(all, most));
  const std::int64_t each_depth = part_depth(b.k, kDepth);
  for (std::int64_t panel = part.panel; panel < part.panel_end; panel += each) {
    const std::int64_t end = std::min(panel + each, part.panel_end), column = panel * width;
    for (std::int64_t k = 0; k < b.k; k += each_depth) {
      const std::int64_t depth = std::min(each_depth, b.k - k);
      const Addend before = k == 0 ? addend : Addend{c, b.n};
      for (std::int64_t i = panel; i < end; ++i) {
        pack_panel<Target>(b, i * width, k, k + depth, block + (i - panel) * depth * width);
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
        multiply_tiles<Target>(tile, last ? from : from + height * a.row_step, a.row_step,
                               std::min(end * width, b.n) - column);
      }
    }
  }
}

}  // namespace

void multiply_by_blocks(const LeftRows& a, const WeightRows& b, float* c, const Addend& addend) {
  for_parts(a.rows, b.n, b.k, panels::tile_rows(), panels::panel_columns(), [&](const Part& part) {
    const Array block = empty({kDepth * kColumns}, Dtype::float32);
    dispatch<float>([&](auto target) __attribute__((always_inline)) {
      multiply_blocks<decltype(target)>(a, b, part, block.as<float>(), c, addend);
    });
  });
}

}  // namespace renga
