// The operands of a weight gradient on tiles: for each element of the filter, the product of x,
// transposed, and gy over all pixels. x's channels are the rows of the left operand, gy's the
// columns of the right one. Each way of packing them has items, which are packed some at a time:
// items(), items_at_once(), pack() on all threads, and terms() of each element of the filter.
#pragma once

#include "ops/convolution/cpu/tiles/images.h"
#include "ops/matmul/cpu/tile_sums.h"

namespace renga::convolution::tiles {

// So many bytes of both operands stay in the second-level cache.
inline constexpr std::int64_t kCachedOperands = 5 << 18;

// PackedOperands says where the operands of an item are. Offsets are in numbers.
struct PackedOperands {
  std::int64_t rows;                               // x's channels of a group, padded
  std::int64_t row_step;                           // from channel to channel of x
  std::int64_t columns;                            // gy's channels of a group, padded
  std::int64_t panel_step;                         // from panel to panel of gy
  std::int64_t left_size, right_size;              // of an item, for all groups
  std::int64_t left_group_step, right_group_step;  // within an item
};

template <class T>
struct Images {
  SourceImage<T> x, gy;
  std::int64_t samples;
};

}  // namespace renga::convolution::tiles
