// Copies between arrays whose innermost axes in memory differ, by tiles: both are read and written
// in runs of neighbouring elements.
#pragma once

#include "tensor/elements.cu.h"

namespace renga::cuda {

inline constexpr int kTransposeTile = 32, kTransposeRows = kThreads / kTransposeTile;

// An axis in bytes: `to` and `from` are the strides.
struct TileAxis {
  std::int64_t extent, to, from;
  __host__ __device__ std::int64_t tiles() const {
    return (extent + kTransposeTile - 1) / kTransposeTile;
  }
};

// `row` is contiguous in the source, `column` in the target; `others` has the rest of the axes. T
// is an integer of the elements' size.
template <class T>
__global__ void copy_tiles(ElementLoop<2> others, TileAxis row, TileAxis column) {
  constexpr int pitch = kTransposeTile + 1;  // columns are in different banks
  T* const tile = shared_memory<T>();
  const int fast = static_cast<int>(threadIdx.x) % kTransposeTile;
  const int slow = static_cast<int>(threadIdx.x) / kTransposeTile;
  const std::int64_t count = others.size * row.tiles() * column.tiles();
  for (std::int64_t n = blockIdx.x; n < count; n += gridDim.x) {
    std::byte* p[2];
    others.locate(n / column.tiles() / row.tiles(), p);
    const std::int64_t i = n / column.tiles() % row.tiles() * kTransposeTile;
    const std::int64_t j = n % column.tiles() * kTransposeTile;
    for (int k = slow; k < kTransposeTile; k += kTransposeRows) {
      if (i + fast >= row.extent || j + k >= column.extent) continue;
      const std::byte* from = p[1] + (i + fast) * row.from + (j + k) * column.from;
      tile[k * pitch + fast] = *reinterpret_cast<const T*>(from);
    }
    __syncthreads();
    for (int k = slow; k < kTransposeTile; k += kTransposeRows) {
      if (i + k >= row.extent || j + fast >= column.extent) continue;
      std::byte* to = p[0] + (i + k) * row.to + (j + fast) * column.to;
      *reinterpret_cast<T*>(to) = tile[fast * pitch + k];
    }
    __syncthreads();
  }
}

// Copies arrays of one dtype; false where tiles would not be faster.
inline bool copy_by_tiles(const Array& from, const Array& to) {
  constexpr std::int64_t kLeast = 8;
  ElementLoop<2> loop = make_element_loop<2>({&to, &from});
  const auto axis = [&](int i) {
    return TileAxis{loop.extents[i], loop.strides[0][i], loop.strides[1][i]};
  };
  const int last = loop.ndim - 1;
  int first = 0;
  while (first < last && loop.strides[1][first] != from.itemsize()) ++first;
  if (from.dtype() != to.dtype() || loop.size == 0 || first >= last) return false;
  const TileAxis row = axis(first), column = axis(last);
  if (column.to != to.itemsize() || std::min(row.extent, column.extent) < kLeast) return false;
  // The loop keeps its other axes.
  for (int i = first; i + 2 < loop.ndim; ++i) {
    loop.extents[i] = loop.extents[i + 1];
    for (auto& strides : loop.strides) strides[i] = strides[i + 1];
  }
  loop.ndim -= 2;
  loop.size /= row.extent * column.extent;
  constexpr std::int64_t kMostBlocks = 1 << 16;
  const std::int64_t tiles = loop.size * row.tiles() * column.tiles();
  visit_bits(to.itemsize(), [&]<class T>(Type<T>) {
    launch(to.device(),
           {static_cast<unsigned>(std::min(tiles, kMostBlocks)), kThreads,
            kTransposeTile * (kTransposeTile + 1) * sizeof(T)},
           copy_tiles<T>, loop, row, column);
  });
  return true;
}

}  // namespace renga::cuda
