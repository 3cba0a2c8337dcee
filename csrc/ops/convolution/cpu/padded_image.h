// Images with explicit zero padding, for algorithms that do not pad themselves.
#pragma once

#include <algorithm>

#include "ops/shape/window.h"
#include "tensor/views.h"

namespace renga::convolution {

// An array (..., extents) with padding, zero outside of the image.
struct PaddedImage {
  Array all;
  Array image;  // the view of `all` without the padding
};

// The extents of an image with its padding, large enough for all positions of the window.
inline Dims padded_extents(const Dims& extents, const Dims& kernel, const Dims& positions,
                           const Window& window) {
  Dims padded;
  for (int axis = 0; axis < extents.size(); ++axis) {
    padded.push_back(std::max(window.covered(positions[axis], kernel[axis], axis),
                              extents[axis] + window.pad[axis]));
  }
  return padded;
}

// Zeros in the shape of x but for its last axes, which get these extents; x begins behind `pad`
// elements of each. Its elements are not copied.
inline PaddedImage zero_padded(const Array& x, const Dims& extents, const Dims& pad) {
  const int first = x.ndim() - extents.size();
  Shape shape = x.shape();
  std::copy(extents.begin(), extents.end(), shape.begin() + first);
  const Array all = zeros(shape, x.dtype(), x.device());
  Array image = all;
  for (int axis = 0; axis < extents.size(); ++axis) {
    image = slice_view(image, first + axis, pad[axis], x.shape(first + axis));
  }
  return {all, image};
}

}  // namespace renga::convolution
