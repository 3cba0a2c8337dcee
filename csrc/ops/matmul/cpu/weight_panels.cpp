#include "ops/matmul/cpu/weight_panels.h"

#include <algorithm>

#include "devices/rounding.h"
#include "ops/matmul/cpu/panel_packing.h"
#include "ops/matmul/cpu/parts.h"

namespace renga {
namespace {

using panels::kPanelColumns, panels::pack_panel, panels::PanelPart;
using simd::dispatch;

// Products are summed in parts that are at most so deep: long sums are made of short ones, for the
// sake of rounding, and a part of `a` stays in the L1 cache.
constexpr std::int64_t kDepth = 256;

// Where the parts of panels are: `part` has its place in the product, and gets its factors.

// Memory for a part of a panel.
struct Scratch {
  Array array = empty({panels::panel_columns() * kDepth}, Dtype::float32);
  float* data = array.as<float>();
};

// Columns of b, where they are.
struct InPlace {
  const WeightColumns& b;
  Scratch scratch;  // for panels with fewer columns
  // Blocks of one panel read too few lines of the cache at a time.
  static constexpr std::int64_t kPanels = 2;

  template <class Target>
  const float* address(std::int64_t depth, std::int64_t column) const {
    return b.data + depth * b.step + column;
  }
  template <class Target>
  [[gnu::always_inline]] void load(PanelPart& part) const {
    constexpr std::int64_t width = kPanelColumns<Target>;
    part.factors = address<Target>(part.first, part.column);
    part.factor_step = b.step;
    if (part.columns == width) return;
    pack_panel<Target>(b, part.column, part.first, part.first + part.depth, scratch.data);
    part.factors = scratch.data;
    part.factor_step = width;
  }
};

// Rows of b, transposed.
struct Transposed {
  const WeightRows& b;
  Scratch scratch;
  static constexpr std::int64_t kPanels = 1;

  template <class Target>
  const float* address(std::int64_t, std::int64_t) const {
    return scratch.data;
  }
  template <class Target>
  [[gnu::always_inline]] void load(PanelPart& part) const {
    pack_panel<Target>(b, part.column, part.first, part.first + part.depth, scratch.data);
    part.factors = scratch.data;
    part.factor_step = kPanelColumns<Target>;
  }
};

// Packed ones.
struct Packed {
  const float* data;
  std::int64_t k;
  // Panel by panel, all of them are read in the order of memory.
  static constexpr std::int64_t kPanels = 1;

  template <class Target>
  const float* address(std::int64_t depth, std::int64_t column) const {
    return data + column * k + depth * kPanelColumns<Target>;
  }
  template <class Target>
  [[gnu::always_inline]] void load(PanelPart& part) const {
    part.factors = address<Target>(part.first, part.column);
    part.factor_step = kPanelColumns<Target>;
  }
};

// c = a times the panels [first, last) + addend. Blocks of some panels are multiplied part by part,
// and each prefetches the next one into the L2 cache.
template <class Target, class Source>
[[gnu::always_inline]] inline void multiply_panels(const LeftRows& a, const Source& source,
                                                   std::int64_t n, std::int64_t k,
                                                   std::int64_t first, std::int64_t last, float* c,
                                                   const Addend& addend) {
  constexpr std::int64_t width = kPanelColumns<Target>;
  const std::int64_t each = part_depth(k, kDepth);
  const bool single = panels::tile_count<Target>(a.rows) == 1;
  for (std::int64_t blocks = divide_up(last - first, Source::kPanels); blocks > 0; --blocks) {
    const std::int64_t end = first + divide_up(last - first, blocks);
    for (std::int64_t depth = 0; depth < k; depth += each) {
      PanelPart part{.first = depth, .depth = std::min(each, k - depth)};
      const std::int64_t next = depth + part.depth;
      for (std::int64_t i = first; i < end; ++i) {
        part.column = i * width;
        part.columns = std::min(width, n - part.column);
        source.template load<Target>(part);
        // The same panel of the next block.
        const std::int64_t ahead = std::min(i + end - first, last - 1) * width;
        part.prefetch.next = next < k ? source.template address<Target>(next, part.column)
                                      : source.template address<Target>(0, ahead);
        part.prefetch.step = part.factor_step;
        // Each tile prefetches a vector of each row, a single one both: all lines of the cache
        // where they begin and end.
        part.ahead = Target::width;
        part.prefetch.second = Target::width - 1;
        if (single) part.prefetch.third = width - 1;
        panels::multiply_part<Target>(a, part, c, n, depth == 0 ? addend : Addend{c, n});
      }
    }
    first = end;
  }
}

// c = a times all panels of n columns + addend, on all threads. make_source() makes their source.
template <class MakeSource>
void multiply_all(const LeftRows& a, std::int64_t n, std::int64_t k, float* c, const Addend& addend,
                  const MakeSource& make_source) {
  for_tiles(a.rows, n, k, panels::tile_rows(), panels::panel_columns(), [&](const Part& part) {
    const LeftRows rows{a.data + part.row * a.row_step, a.row_step, a.depth_step,
                        part.row_end - part.row};
    const auto source = make_source();
    dispatch<float>([&](auto target) __attribute__((always_inline)) {
      multiply_panels<decltype(target)>(rows, source, n, k, part.panel, part.panel_end,
                                        c + part.row * n, addend.from(part.row, 0));
    });
  });
}

template <class Weights, class MakeSource>
void multiply_weights(const LeftRows& a, const Weights& b, const Array& packed, float* c,
                      const Addend& addend, const MakeSource& make_source) {
  if (!packed.defined()) return multiply_all(a, b.n, b.k, c, addend, make_source);
  multiply_all(a, b.n, b.k, c, addend, [&] { return Packed{packed.as<float>(), b.k}; });
}

// How weights are packed: so many panels side by side, so many depths at a time. Rows are read to
// their ends; of columns, a part of each row that is long enough to be read fast from memory.
struct PackingOrder {
  std::int64_t panels, depths;
};
PackingOrder packing_order(const WeightRows& b) { return {1, b.k}; }
PackingOrder packing_order(const WeightColumns&) { return {8, 4}; }

template <bool streams, class Weights>
void pack_weights(const Weights& b, float* to) {
  const std::int64_t columns = panels::panel_columns(), each = columns * b.k;
  const PackingOrder order = packing_order(b);
  parallel_for(divide_up(b.n, columns), each, [&](std::int64_t first, std::int64_t last) {
    dispatch<float>([&](auto target) __attribute__((always_inline)) {
      for (std::int64_t side = first; side < last; side += order.panels) {
        for (std::int64_t k = 0; k < b.k; k += order.depths) {
          for (std::int64_t i = side; i < std::min(side + order.panels, last); ++i) {
            pack_panel<decltype(target), streams>(
                b, i * columns, k, std::min(k + order.depths, b.k), to + i * each + k * columns);
          }
        }
      }
    });
    if constexpr (streams) finish_streaming();
  });
}

template <class Weights>
Array pack_weights(const Weights& b) {
  // Smaller ones stay in the second-level cache.
  constexpr std::int64_t kStreamed = 1 << 18;
  const std::int64_t columns = panels::panel_columns();
  const Array packed = empty({divide_up(b.n, columns), columns * b.k}, Dtype::float32);
  float* const to = packed.as<float>();
  if (packed.size() >= kStreamed && starts_cache_line(to)) {
    pack_weights<true>(b, to);
  } else {
    pack_weights<false>(b, to);
  }
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
