#include "ops/matmul/cpu/weight_panels.h"

#include <algorithm>

#include "devices/rounding.h"
#include "ops/matmul/cpu/panel_packing.h"

namespace renga {
namespace {

using panels::for_panels, panels::kPanelColumns, panels::pack_panel;
using simd::dispatch;

// Long sums are made of short ones, for the sake of rounding.
constexpr std::int64_t kDepth = 256;

// c (+)= a times the panel of b from `row` on; without the panel, its parts are packed in
// `scratch`.
template <class Target>
[[gnu::always_inline]] inline void multiply_panel(const LeftRows& a, const WeightRows& b,
                                                  std::int64_t row, const float* panel,
                                                  float* scratch, float* c, bool accumulate) {
  constexpr int width = kPanelColumns<Target>;
  const std::int64_t columns = std::min<std::int64_t>(width, b.n - row);
  for (std::int64_t k = 0; k < b.k; k += kDepth) {
    const std::int64_t depth = std::min(kDepth, b.k - k);
    panels::PanelPart part{.factors = scratch,
                           .factor_step = width,
                           .first = k,
                           .depth = depth,
                           .column = row,
                           .columns = columns,
                           .next = scratch};
    if (panel == nullptr) {
      pack_panel<Target>(b, row, k, k + depth, scratch);
    } else {
      // The tiles prefetch the same part of the next panel, each as much.
      part.factors = panel + k * width;
      part.next = part.factors + b.k * width;
      const std::int64_t tiles = panels::tile_count<Target>(a.rows);
      part.next_step = width / tiles;
      if (tiles == 1) part.next_second = Target::width;
      part.ahead = depth * part.next_step;
    }
    panels::multiply_part<Target>(a, part, c, b.n, accumulate || k > 0);
  }
}

}  // namespace

Array pack_panels(const WeightRows& b) {
  const std::int64_t columns = panels::panel_columns(), each = columns * b.k;
  const Array packed = empty({divide_up(b.n, columns), each}, Dtype::float32);
  for_panels(b.n, b.k, [&](std::int64_t first, std::int64_t last) {
    dispatch<float>([&](auto target) __attribute__((always_inline)) {
      for (std::int64_t i = first; i < last; ++i) {
        pack_panel<decltype(target)>(b, i * columns, 0, b.k, packed.as<float>() + i * each);
      }
    });
  });
  return packed;
}

void multiply_by_panels(const LeftRows& a, const WeightRows& b, const Array& packed, float* c,
                        bool accumulate) {
  const std::int64_t columns = panels::panel_columns();
  for_panels(b.n, b.k * a.rows / 8, [&](std::int64_t first, std::int64_t last) {
    const Array scratch = empty({columns * kDepth}, Dtype::float32);
    dispatch<float>([&](auto target) __attribute__((always_inline)) {
      for (std::int64_t i = first; i < last; ++i) {
        const float* const panel =
            packed.defined() ? packed.as<float>() + i * columns * b.k : nullptr;
        multiply_panel<decltype(target)>(a, b, i * columns, panel, scratch.as<float>(), c,
                                         accumulate);
      }
    });
  });
}

}  // namespace renga
