// Views: other ways to walk over the same memory. None of these moves an element.
#pragma once

#include "tensor/array.h"

namespace renga {

// An axis counted from either end, in [0, ndim); throws InvalidType naming `op` otherwise.
int normalize_axis(const char* op, std::int64_t axis, int ndim);
// The same for several; an axis named twice is an error.
Axes normalize_axes(const char* op, const Axes& axes, int ndim);

// Whether every stride steps over all that lies within smaller strides, so that no two elements are
// one in memory. Slices, transposes and diagonals of an array without overlap are so.
bool elements_are_apart(const Array& x);

// Throws InvalidType naming `op` unless x is of floats.
inline void require_floats(const char* op, const Array& x) {
  require(is_float(x.dtype()), op, ": expected a float dtype, got ", x.dtype());
}

// The shape two arrays broadcast to; throws InvalidType naming `op`.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);
// Stretches axes of length 1 (stride 0) and adds axes in front.
Array broadcast_view(const char* op, const Array& x, const Shape& shape);

// `axes` is a permutation.
Array transpose_view(const Array& x, const Axes& axes);
// One step along `axis` from `start`, `length` elements at `step` apart (negative steps walk back).
Array slice_view(const Array& x, int axis, std::int64_t start, std::int64_t length,
                 std::int64_t step = 1);
// Drops `axis` at a position.
Array select_view(const Array& x, int axis, std::int64_t index);
Array expand_view(const Array& x, int axis);
// Another shape over the same memory; an undefined Array where the strides do not allow it.
Array reshape_view(const Array& x, const Shape& shape);

}  // namespace renga
