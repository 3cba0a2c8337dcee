#include "ops/matmul/cpu/weight_blocks.h"

#include <cstring>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "ops/matmul/cpu/panel_packing.h"
#include "tensor/array.h"

namespace renga {
namespace {

using panels::kMostRows, panels::kPanelColumns, panels::pack_panel;
using simd::dispatch;

// A block of b is at most so deep and so wide: 768 KB.
constexpr std::int64_t kDepth = 384, kColumns = 512;
// Copied rows of `a` are so far apart. A power of 2 would put them at the same place in the cache.
constexpr std::int64_t kRowStep = kDepth + 16;

// The depth of a block depends on that of the product alone: so do the bits of the result.
std::int64_t block_depth(std::int64_t k) {
  constexpr std::int64_t kMultiple = 16;
  return round_up(divide_up(k, divide_up(k, kDepth)), kMultiple);
}

// What a thread computes: rows of c, and panels of it.
struct Part {
  std::int64_t row, row_end, panel, panel_end;
};

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
    tile.next = next;
    tile.next_step = 1;
    tile.addend = addend.from(0, column);
    if (column / width + 1 < tile.rows) next += next_step;
    if (tile.columns > Target::width) {
      panels::multiply_thirds<Target, panels::kVectors>(tile);
    } else {
      panels::multiply_thirds<Target, 1>(tile);
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
  const std::int64_t each_depth = block_depth(b.k);
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
                                .next = from,
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

// How many rows of parts are best, if there are so many parts: what several read is least.
std::int64_t rows_of_parts(std::int64_t parts, std::int64_t m, std::int64_t n) {
  std::int64_t best = 1;
  for (std::int64_t rows = 2; rows <= parts; ++rows) {
    const auto read = [=](std::int64_t rows) { return m * (parts / rows) + n * rows; };
    if (parts % rows == 0 && read(rows) < read(best)) best = rows;
  }
  return best;
}

}  // namespace

void multiply_by_blocks(const LeftRows& a, const WeightRows& b, float* c, const Addend& addend) {
  // Counts a vector of products as one operation.
  const std::int64_t parts = thread_count(a.rows * b.n * b.k / 8);
  const std::int64_t down = rows_of_parts(parts, a.rows, b.n), across = parts / down;
  // A thread for each part.
  parallel_for(parts, kParallelWorth, [&](std::int64_t begin, std::int64_t end) {
    const Array block = empty({kDepth * kColumns}, Dtype::float32);
    dispatch<float>([&](auto target) __attribute__((always_inline)) {
      using Target = decltype(target);
      constexpr std::int64_t height = kMostRows<Target>, width = kPanelColumns<Target>;
      const std::int64_t tiles = divide_up(a.rows, height);
      const std::int64_t panels = divide_up(b.n, width);
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t row = i / across, column = i % across;
        const Part part{tiles * row / down * height,
                        std::min(a.rows, tiles * (row + 1) / down * height),
                        panels * column / across, panels * (column + 1) / across};
        // There may be fewer tiles or panels than threads.
        if (part.row == part.row_end || part.panel == part.panel_end) continue;
        multiply_blocks<Target>(a, b, part, block.as<float>(), c, addend);
      }
    });
  });
}

}  // namespace renga
