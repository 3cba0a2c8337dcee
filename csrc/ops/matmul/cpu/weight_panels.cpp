#include <algorithm>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "ops/matmul/cpu/float_kernels.h"
#include "ops/matmul/cpu/panel_packing.h"
#include "ops/matmul/cpu/panel_tile.h"
#include "ops/matmul/cpu/parts.h"
#include "tensor/streaming.cpu.h"

namespace renga {
namespace {

using panels::panel_columns, panels::tile_rows;

// Products are summed in parts that are at most so deep: long sums are made of short ones, for the
// sake of rounding, and a part of `a` stays in the L1 cache.
constexpr std::int64_t kDepth = 256;

// All rows of a product times a part of a panel, tile by tile.
struct PanelPart {
  const float* factors = nullptr;
  std::int64_t factor_step = 0;
  std::int64_t first = 0, depth = 0;  // of the product
  std::int64_t column = 0, columns = 0;
  // The first tile prefetches so, the second one a vector further.
  panels::Ahead ahead = {};
};

// c = the product + addend; c (rows, n) is contiguous.
void multiply_part(const LeftRows& a, std::int64_t tiles, const PanelPart& part, float* c,
                   std::int64_t n, const Addend& addend) {
  panels::Tile tile{.a = nullptr,
                    .row_step = a.row_step,
                    .depth_step = a.depth_step,
                    .factors = part.factors,
                    .factor_step = part.factor_step,
                    .depth = part.depth,
                    .c = nullptr,
                    .ldc = n,
                    .columns = static_cast<int>(part.columns),
                    .addend = {}};
  panels::Ahead ahead = part.ahead;
  for (std::int64_t t = 0, row = 0; t < tiles; ++t, ahead.next += panels::vector_columns()) {
    if (t == panels::kVectors) ahead.lines = 0;
    const std::int64_t rows = (a.rows - row) / (tiles - t);
    tile.a = a.data + row * a.row_step + part.first * a.depth_step;
    tile.c = c + row * n + part.column;
    tile.addend = addend.from(row, part.column);
    panels::multiply_tile(rows, tile, ahead);
    row += rows;
  }
}

// The types below say where the parts of panels are: `part` has its place in the product, and gets
// its factors.

// Memory for a part of a panel.
struct Scratch {
  std::int64_t width = panel_columns();
  Array array = empty({width * kDepth}, Dtype::float32);
  float* data = array.as<float>();

  template <class Weights>
  void load(const Weights& b, PanelPart& part) const {
    panels::pack_panel(b, part.column, part.first, part.first + part.depth, data);
    part.factors = data;
    part.factor_step = width;
  }
};

// Columns of b, where they are.
struct InPlace {
  const WeightColumns& b;
  Scratch scratch;  // for panels with fewer columns
  // Blocks of one panel read too few lines of the cache at a time.
  static constexpr std::int64_t kPanels = 2;

  const float* address(std::int64_t depth, std::int64_t column) const {
    return b.data + depth * b.step + column;
  }
  // What a tile prefetches of the factors from there on. Lines of the caches begin anywhere.
  panels::Ahead ahead(std::int64_t depth, std::int64_t column, bool single) const {
    const std::int64_t vector = panels::vector_columns();
    return {.lines = single ? 3 : 2,
            .next = address(depth, column),
            .step = b.step,
            .second = vector - 1,
            .third = panels::kVectors * vector - 1};
  }
  void load(PanelPart& part) const {
    if (part.columns < scratch.width) return scratch.load(b, part);
    part.factors = address(part.first, part.column);
    part.factor_step = b.step;
  }
};

// Rows of b, transposed.
struct Transposed {
  const WeightRows& b;
  Scratch scratch;
  static constexpr std::int64_t kPanels = 1;

  // Transposing prefetches.
  panels::Ahead ahead(std::int64_t, std::int64_t, bool) const { return {}; }
  void load(PanelPart& part) const { scratch.load(b, part); }
};

// These parts are of packed panels.
struct Packed {
  const float* data;
  std::int64_t k;
  std::int64_t width = panel_columns();
  // Panel by panel, all of them are read in the order of memory.
  static constexpr std::int64_t kPanels = 1;

  const float* address(std::int64_t depth, std::int64_t column) const {
    return data + column * k + depth * width;
  }
  panels::Ahead ahead(std::int64_t depth, std::int64_t column, bool single) const {
    return {.lines = single ? 2 : 1,
            .next = address(depth, column),
            .step = width,
            .second = panels::vector_columns()};
  }
  void load(PanelPart& part) const {
    part.factors = address(part.first, part.column);
    part.factor_step = width;
  }
};

// c = a times the panels [first, last) + addend. Blocks of some panels are multiplied part by part,
// and each prefetches the next one into the L2 cache.
template <class Source>
void multiply_panels(const LeftRows& a, const Source& source, std::int64_t n, std::int64_t k,
                     std::int64_t first, std::int64_t last, float* c, const Addend& addend) {
  const std::int64_t width = panel_columns();
  const std::int64_t each = part_depth(k, kDepth), tiles = divide_up(a.rows, tile_rows());
  for (std::int64_t blocks = divide_up(last - first, Source::kPanels); blocks > 0; --blocks) {
    const std::int64_t end = first + divide_up(last - first, blocks);
    for (std::int64_t depth = 0; depth < k; depth += each) {
      PanelPart part{.first = depth, .depth = std::min(each, k - depth)};
      const std::int64_t next = depth + part.depth;
      for (std::int64_t i = first; i < end; ++i) {
        part.column = i * width;
        part.columns = std::min(width, n - part.column);
        source.load(part);
        // The same panel of the next block.
        const std::int64_t next_column = std::min(i + end - first, last - 1) * width;
        part.ahead = next < k ? source.ahead(next, part.column, tiles == 1)
                              : source.ahead(0, next_column, tiles == 1);
        multiply_part(a, tiles, part, c, n, depth == 0 ? addend : Addend{c, n});
      }
    }
    first = end;
  }
}

// c = a times all panels of n columns + addend, on all threads. make_source() makes their source.
template <class MakeSource>
void multiply_all(const LeftRows& a, std::int64_t n, std::int64_t k, float* c, const Addend& addend,
                  const MakeSource& make_source) {
  for_tiles(a.rows, n, k, tile_rows(), panel_columns(), [&](const Part& part) {
    const LeftRows rows{a.data + part.row * a.row_step, a.row_step, a.depth_step,
                        part.row_end - part.row};
    multiply_panels(rows, make_source(), n, k, part.panel, part.panel_end, c + part.row * n,
                    addend.from(part.row, 0));
  });
}

template <class Weights, class MakeSource>
void multiply_weights(const LeftRows& a, const Weights& b, const Array& packed, float* c,
                      const Addend& addend, const MakeSource& make_source) {
  if (!packed.defined()) return multiply_all(a, b.n, b.k, c, addend, make_source);
  multiply_all(a, b.n, b.k, c, addend, [&] { return Packed{packed.as<float>(), b.k}; });
}

template <class Weights>
Array pack_weights(const Weights& b) {
  // Smaller ones stay in the second-level cache.
  constexpr std::int64_t kStreamed = 1 << 18;
  const std::int64_t count = divide_up(b.n, panel_columns()), each = panel_columns() * b.k;
  const Array packed = empty({count, each}, Dtype::float32);
  float* const to = packed.as<float>();
  const bool streams = packed.size() >= kStreamed && starts_cache_line(to);
  parallel_for(count, each, [&](std::int64_t first, std::int64_t last) {
    panels::pack_panels(b, first, last, streams, to);
  });
  return packed;
}

}  // namespace

Array pack_panels(const WeightColumns& b) { return pack_weights(b); }
Array pack_panels(const WeightRows& b) { return pack_weights(b); }

void multiply_by_panels(const LeftRows& a, const WeightColumns& b, const Array& packed, float* c,
                        const Addend& addend) {
  multiply_weights(a, b, packed, c, addend, [&] { return InPlace{b, {}}; });
}

void multiply_by_panels(const LeftRows& a, const WeightRows& b, const Array& packed, float* c,
                        const Addend& addend) {
  multiply_weights(a, b, packed, c, addend, [&] { return Transposed{b, {}}; });
}

}  // namespace renga
