// Stacks of matrices, for the kernels of all devices.
#pragma once

#include "tensor/views.h"

namespace renga {

// (..., m, n) with a single batch axis in front; a matrix stays as it is.
inline Array flatten_batch(const Array& x) {
  const int ndim = x.ndim();
  if (ndim == 2) return x;
  Shape shape{1, x.shape(ndim - 2), x.shape(ndim - 1)};
  for (int axis = 0; axis < ndim - 2; ++axis) shape[0] *= x.shape(axis);
  const Array view = reshape_view(x, shape);
  return view.defined() ? view : reshape_view(contiguous(x), shape);
}

// The matrices transposed.
inline Array transpose_matrices(const Array& x) {
  Axes axes;
  for (int axis = 0; axis < x.ndim(); ++axis) axes.push_back(axis);
  std::swap(axes[x.ndim() - 1], axes[x.ndim() - 2]);
  return transpose_view(x, axes);
}

}  // namespace renga
