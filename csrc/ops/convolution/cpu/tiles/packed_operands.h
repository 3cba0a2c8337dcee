// The operands of a weight gradient on tiles: for each element of the filter, the product of x,
// transposed, and gy over all pixels. x's channels are the rows of the left operand, gy's the
// columns of the right one. Each way of packing them has items(), of which some are packed at a
// time: pack_left() on all threads, pack_right() some columns on the thread that multiplies them,
// and terms() of each element of the filter.
#pragma once

#include "ops/convolution/cpu/tiles/images.h"
#include "ops/matmul/cpu/tile_sums.h"

namespace renga::convolution::tiles {

// Items are so small that the second-level cache holds both operands of one beside the sums.
inline constexpr std::int64_t kCachedItem = 5 << 17;

// The sums of so many columns, whole blocks, stay in the second-level cache for all rows and
// elements of the filter; at least one block.
constexpr std::int64_t columns_at_once(std::int64_t rows, std::int64_t columns, std::int64_t taps) {
  constexpr std::int64_t kCachedBlocks = 128;  // of 4 KiB
  const std::int64_t each = divide_up(rows, kTileBlock) * taps;
  return std::clamp<std::int64_t>(kCachedBlocks / each, 1, divide_up(columns, kTileBlock)) *
         kTileBlock;
}

// PackedOperands says where the operands of an item are. Offsets are in numbers. The panels of the
// right operand have the depths of several items after another.
struct PackedOperands {
  std::int64_t rows;                        // x's channels of a group, padded
  std::int64_t row_step;                    // from channel to channel of x
  std::int64_t left_size, left_group_step;  // of an item for all groups, and within it
  std::int64_t columns;                     // gy's channels of a group, padded
  std::int64_t panel_size;                  // of 16 columns of an item

  // Bytes of an item, with so many columns.
  std::int64_t bytes(std::int64_t columns) const {
    return 2 * (left_size + columns / kTileEdge * panel_size);
  }
};

// Some of gy's channels, padded.
struct ColumnRange {
  std::int64_t group, first, count;
};

template <class T>
struct Images {
  SourceImage<T> x, gy;
  std::int64_t samples;
};

}  // namespace renga::convolution::tiles
