// The sliding windows of convolution and pooling.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tensor/array.h"
#include "tensor/extents.h"

namespace renga {

using Pair = std::array<std::int64_t, 2>;  // rows, columns

// The number of positions of a window of extent `reach` on `size` elements that are padded at both
// ends. With `cover_all` the last window may extend past the padding, so that every element is
// covered.
inline std::int64_t window_positions(std::int64_t size, std::int64_t reach, std::int64_t stride,
                                     std::int64_t pad, bool cover_all) {
  const std::int64_t slack = size + 2 * pad - reach + (cover_all ? stride - 1 : 0);
  return slack < 0 ? 0 : slack / stride + 1;
}

// Throws std::invalid_argument naming `op` unless each of `axes` axes has a stride and a dilation
// above 0 and a padding of at least 0, all below 2^31: products of two of them fit in 63 bits.
void check_window(const char* op, int axes, const Dims& stride, const Dims& pad,
                  const Dims& dilate);
// Throws OutOfMemory naming `op` if images of `shape` with padding exceed the machine's memory.
void check_padded(const char* op, const Shape& shape, const Dims& pad, Dtype dtype, Device device);

// Options of a convolution; one number per axis of the images after samples and channels.
struct Window {
  Dims stride{1, 1};
  Dims pad{0, 0};
  Dims dilate{1, 1};
  std::int64_t groups = 1;

  // The extent of a dilated kernel.
  std::int64_t reach(std::int64_t kernel, int axis) const {
    return (kernel - 1) * dilate[axis] + 1;
  }
  // Elements from the first to the last that kernels at so many positions touch, with padding.
  std::int64_t covered(std::int64_t positions, std::int64_t kernel, int axis) const {
    return (positions - 1) * stride[axis] + reach(kernel, axis);
  }
  // The extent of a convolution's output, and of the smallest input that has a given output.
  std::int64_t extent(std::int64_t size, std::int64_t kernel, int axis, bool cover_all) const {
    return window_positions(size, reach(kernel, axis), stride[axis], pad[axis], cover_all);
  }
  std::int64_t transposed_extent(std::int64_t size, std::int64_t kernel, int axis) const {
    const std::int64_t last = saturated_product(std::max<std::int64_t>(size - 1, 0), stride[axis]);
    return saturated_sum(last, reach(kernel, axis)) - 2 * pad[axis];
  }
};

struct PoolingWindow {
  Pair ksize{2, 2};
  Pair stride{2, 2};
  Pair pad{0, 0};

  std::int64_t area() const { return ksize[0] * ksize[1]; }
  std::int64_t extent(std::int64_t size, int axis, bool cover_all) const {
    return window_positions(size, ksize[axis], stride[axis], pad[axis], cover_all);
  }
};

}  // namespace renga
