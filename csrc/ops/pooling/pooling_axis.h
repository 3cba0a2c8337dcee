// Which elements the windows of a pooling cover along one axis, for the kernels of all devices.
#pragma once

#include "devices/host_device.h"
#include "ops/shape/window.h"
#include "tensor/array.h"

namespace renga {

struct Span {
  std::int64_t begin, end;
};

// Along one axis of images x pooled to images y.
struct PoolingAxis {
  // The first element of the window at `position`; negative in the padding.
  RENGA_HOST_DEVICE std::int64_t origin(std::int64_t position) const {
    return position * stride - pad;
  }
  // The part of the window at `position` that is inside of the image, counted from its first
  // element.
  RENGA_HOST_DEVICE Span inside(std::int64_t position) const {
    const std::int64_t start = origin(position), left = size - start;
    return {start < 0 ? -start : 0, left < ksize ? left : ksize};
  }
  // The positions whose windows cover element i of the image.
  RENGA_HOST_DEVICE Span covering(std::int64_t i) const {
    const std::int64_t beyond = i + pad - ksize;  // the last start of a window that ends before i
    const std::int64_t end = (i + pad) / stride + 1;
    return {beyond < 0 ? 0 : beyond / stride + 1, end < positions ? end : positions};
  }
  // Whether the windows are single elements or pairs of them, one after the other.
  bool are_elements() const { return are_runs(1); }
  bool are_pairs() const { return are_runs(2); }
  bool are_runs(std::int64_t length) const {
    return ksize == length && stride == length && pad == 0 && length * positions <= size;
  }

  std::int64_t pad, stride, ksize, size, positions;
};

inline PoolingAxis pooling_axis(const Array& x, const Array& y, const PoolingWindow& window,
                                int axis) {
  const auto k = static_cast<std::size_t>(axis);
  return {window.pad[k], window.stride[k], window.ksize[k], x.shape(2 + axis), y.shape(2 + axis)};
}

}  // namespace renga
