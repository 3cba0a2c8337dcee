#include "ops/matmul/cpu/weight_columns.h"

#include <algorithm>

#include "devices/rounding.h"
#include "ops/matmul/cpu/panel_tile.h"

namespace renga {
namespace {

using panels::for_panels, panels::kPanelColumns, simd::dispatch;

// A panel of so many rows of b stays in the L1 cache. So many panels are a block, which prefetches
// the next one into the L2 cache. The first block is not prefetched, so that it should be small,
// but blocks of one or two panels read too few lines of the cache at a time.
constexpr std::int64_t kDepth = 128, kPanels = 4;

// A part of the last panel, which has fewer columns: a copy, filled up with zeros.
template <int width>
const float* copy_panel(const float* from, std::int64_t step, std::int64_t columns,
                        std::int64_t depth, float* panel) {
  std::fill_n(panel, depth * width, 0.0f);
  for (std::int64_t k = 0; k < depth; ++k) {
    std::copy_n(from + k * step, columns, panel + k * width);
  }
  return panel;
}

// c (+)= a times the panels [first, last) of b. Groups of panels are multiplied by blocks of rows
// of b, each of which prefetches the next one.
template <class Target>
[[gnu::always_inline]] inline void multiply_panels(const LeftRows& a, const WeightColumns& b,
                                                   std::int64_t first, std::int64_t last, float* c,
                                                   bool accumulate) {
  constexpr int width = kPanelColumns<Target>;
  alignas(64) float copied[kDepth * width];
  const std::int64_t each = divide_up(b.k, divide_up(b.k, kDepth));
  for (std::int64_t groups = divide_up(last - first, kPanels); groups > 0; --groups) {
    const std::int64_t count = divide_up(last - first, groups);
    for (std::int64_t k = 0; k < b.k; k += each) {
      panels::PanelPart part{.first = k, .depth = std::min(each, b.k - k)};
      // Each tile prefetches a vector of each row, a single one both: all lines of the cache where
      // they begin and end.
      part.next_step = b.step;
      part.ahead = Target::width;
      part.next_second = Target::width - 1;
      if (panels::tile_count<Target>(a.rows) == 1) part.next_third = width - 1;
      for (std::int64_t i = first; i < first + count; ++i) {
        part.column = i * width;
        part.columns = std::min<std::int64_t>(width, b.n - part.column);
        part.factors = b.data + k * b.step + part.column;
        part.next = k + each < b.k     ? part.factors + each * b.step
                    : i + count < last ? b.data + part.column + count * width
                                       : part.factors;
        part.factor_step = b.step;
        if (part.columns < width) {
          part.factors = copy_panel<width>(part.factors, b.step, part.columns, part.depth, copied);
          part.factor_step = width;
        }
        panels::multiply_part<Target>(a, part, c, b.n, accumulate || k > 0);
      }
    }
    first += count;
  }
}

}  // namespace

void multiply_by_columns(const LeftRows& a, const WeightColumns& b, float* c, bool accumulate) {
  for_panels(b.n, b.k * a.rows / 8, [&](std::int64_t first, std::int64_t last) {
    dispatch<float>([&](auto target) __attribute__((always_inline)) {
      multiply_panels<decltype(target)>(a, b, first, last, c, accumulate);
    });
  });
}

}  // namespace renga
