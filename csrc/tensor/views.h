// Views: other shapes and strides over the same memory. Nothing is copied.
#pragma once

#include "tensor/array.h"

namespace renga {

// An axis counted from either end, in [0, ndim); throws InvalidType naming `op` otherwise.
int normalize_axis(const char* op, std::int64_t axis, int ndim);
// Normalizes several axes; an axis named twice is an error.
Axes normalize_axes(const char* op, const Axes& axes, int ndim);

// Whether no two elements share memory, as far as the strides show: each stride is at least the
// extent of the axes with smaller strides. True for slices, transposes and diagonals of such
// arrays.
bool has_distinct_elements(const Array& x);

// Whether the elements of a and b, of one shape, lie in the same order in memory.
bool same_layout(const Array& a, const Array& b);

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
// `length` elements along `axis` from `start`, `step` apart (may be negative).
Array slice_view(const Array& x, int axis, std::int64_t start, std::int64_t length,
                 std::int64_t step = 1);
// The view at `index` along `axis`, without that axis.
Array select_view(const Array& x, int axis, std::int64_t index);
Array expand_view(const Array& x, int axis);
// The elements at (i, i + offset) of two axes, which the new last axis replaces.
Array diagonal_view(const Array& x, int rows, int columns, std::int64_t offset);
// Another shape over the same memory; an undefined Array where the strides do not allow it.
Array reshape_view(const Array& x, const Shape& shape);

}  // namespace renga
