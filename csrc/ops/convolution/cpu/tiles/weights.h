// Filters as right operands of products of tiles.
#pragma once

#include "ops/convolution/cpu/tiles/geometry.h"
#include "tensor/array.h"

namespace renga::convolution::tiles {

// Panels (matmul/cpu/bfloat16_packing.h) of one group after another. Their depth is, for each
// element of the filter, the source channels, padded to a multiple of a tile's depth; with
// `gathered`, those of all elements without gaps, padded together. Their columns are the
// destination channels, padded to whole tiles.
struct FilterPanels {
  FilterPanels(const Geometry& geometry, bool gathered);

  std::int64_t tap_depth, depth, columns;
  std::int64_t panel_size() const;  // in numbers, of 16 columns
  std::int64_t group_size() const;
};

// Packs float32 or bfloat16 weights that are in row-major order.
Array pack_filter(const Array& W, const Geometry& geometry, bool backward,
                  const FilterPanels& panels, bool gathered);

}  // namespace renga::convolution::tiles
