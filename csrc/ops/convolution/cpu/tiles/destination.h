// The sums of a convolution on tiles are written here.
#pragma once

#include "ops/convolution/cpu/tiles/images.h"
#include "ops/convolution/cpu/tiles/weights.h"
#include "ops/matmul/cpu/tile_sums.h"

namespace renga::convolution::tiles {

// All parts of a convolution share these operands. `T` and `U` are float or bfloat16.
template <class T, class U>
struct Operands {
  const Geometry& geometry;
  SourceImage<T> image;
  const bfloat16* panels;
  const FilterPanels& layout;
  const float* bias;  // of all groups, or nullptr
  U* destination;     // dense, channels last

  // The number of a destination pixel of a sample, and where its first channel is written.
  std::int64_t pixel(const Phase& phase, const Extents& i) const {
    std::int64_t at = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      at = at * geometry.destination[axis] + phase.first[axis] + i[axis] * phase.step[axis];
    }
    return at;
  }
  std::int64_t bytes() const {
    return geometry.samples * product(geometry.destination) * geometry.groups *
           geometry.destination_channels * static_cast<std::int64_t>(sizeof(U));
  }
  U* at(std::int64_t sample, std::int64_t pixel) const {
    return destination + (sample * product(geometry.destination) + pixel) * geometry.groups *
                             geometry.destination_channels;
  }
};

// A block of columns, of a group.
struct Columns {
  std::int64_t group, first, count;  // channels of the group

  static std::int64_t blocks_of_group(const Geometry& geometry) {
    return divide_up(geometry.destination_channels, kTileBlock);
  }
  static Columns block(const Geometry& geometry, std::int64_t i) {
    const std::int64_t each = blocks_of_group(geometry), first = i % each * kTileBlock;
    return {i / each, first, std::min(kTileBlock, geometry.destination_channels - first)};
  }
  // The panels, from the first of the block on.
  const bfloat16* panels(const bfloat16* all, const FilterPanels& layout) const {
    return all + group * layout.group_size() + first / kTileEdge * layout.panel_size();
  }
  std::int64_t channel(const Geometry& geometry) const {
    return group * geometry.destination_channels + first;
  }
};

}  // namespace renga::convolution::tiles
