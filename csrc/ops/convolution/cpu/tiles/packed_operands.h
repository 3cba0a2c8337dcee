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

// So many of all items, of these bytes and this depth each, are packed at once as stay in the
// second-level cache, or more where the sums would not stay there beside them: these are read and
// written each time.
inline std::int64_t items_packed_at_once(std::int64_t items, std::int64_t bytes, std::int64_t depth,
                                         std::int64_t sums) {
  constexpr std::int64_t kCachedSums = 1 << 17, kDepth = 1024;
  const std::int64_t cached = kCachedOperands / bytes;
  const std::int64_t deep = sums > kCachedSums ? divide_up(kDepth, depth) : 1;
  return std::clamp<std::int64_t>(std::max(cached, deep), 1, items);
}

template <class T>
struct Images {
  SourceImage<T> x, gy;
  std::int64_t samples;
};

}  // namespace renga::convolution::tiles
