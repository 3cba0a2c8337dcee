#include "ops/matmul/cpu/weight_columns.h"

#include <algorithm>

#include "ops/matmul/cpu/panel_tile.h"

namespace renga {
namespace {

using panels::for_panels, panels::kPanelColumns, simd::dispatch;

// Panels of so many rows of b stay in the L1 cache, all of them in the L2 cache.
constexpr std::int64_t kDepth = 128;

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

// c (+)= a times the panels [first, last) of b, by blocks of rows of b.
template <class Target>
[[gnu::always_inline]] inline void multiply_panels(const FewRows& a, const WeightColumns& b,
                                                   std::int64_t first, std::int64_t last, float* c,
                                                   bool accumulate) {
  constexpr int width = kPanelColumns<Target>;
  alignas(64) float copied[kDepth * width];
  for (std::int64_t k = 0; k < b.k; k += kDepth) {
    const std::int64_t depth = std::min(kDepth, b.k - k);
    panels::PanelPart part{.first = k, .depth = depth};
    // Each tile prefetches a vector of each row of the next block, a single one both.
    part.next_step = b.step;
    part.ahead = Target::width;
    if (panels::tile_count<Target>(a.rows) == 1) part.next_second = Target::width;
    for (std::int64_t i = first; i < last; ++i) {
      part.column = i * width;
      part.columns = std::min<std::int64_t>(width, b.n - part.column);
      part.factors = b.data + k * b.step + part.column;
      part.next = part.factors + depth * b.step;
      part.factor_step = b.step;
      if (part.columns < width) {
        part.factors = copy_panel<width>(part.factors, b.step, part.columns, depth, copied);
        part.factor_step = width;
      }
      panels::multiply_part<Target>(a, part, c, b.n, accumulate || k > 0);
    }
  }
}

}  // namespace

void multiply_by_columns(const FewRows& a, const WeightColumns& b, float* c, bool accumulate) {
  for_panels(b.n, b.k * a.rows / 8, [&](std::int64_t first, std::int64_t last) {
    dispatch<float>([&](auto target) __attribute__((always_inline)) {
      multiply_panels<decltype(target)>(a, b, first, last, c, accumulate);
    });
  });
}

}  // namespace renga
