// The operands of products of matrices, as the kernels take them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "tensor/views.h"

namespace renga {

// The operands of a product of these sizes are a (m, k), b (k, n) and c (m, n).
struct Sizes {
  std::int64_t m, n, k;
};
inline Sizes sizes_of(const Array& a, const Array& c) {
  return {c.shape(c.ndim() - 2), c.shape(c.ndim() - 1), a.shape(a.ndim() - 1)};
}

// A matrix, or a stack of them, whose rows or columns are contiguous, as BLAS requires.
struct Matrix {
  Array array;
  bool transposed = false;  // the columns are contiguous
  std::int64_t leading = 1;

  // Returns the begin of matrix i, counted along all batch axes.
  std::byte* data(std::int64_t i) const {
    std::byte* p = array.data();
    for (int axis = array.ndim() - 3; axis >= 0; --axis) {
      p += i % array.shape(axis) * array.strides()[axis];
      i /= array.shape(axis);
    }
    return p;
  }
  template <class T>
  const T* at(std::int64_t i) const {
    return reinterpret_cast<const T*>(data(i));
  }
};

inline Matrix as_matrix(const Array& x) {
  const int row = x.ndim() - 2, column = x.ndim() - 1;
  const std::int64_t item = x.itemsize(), rows = x.shape(row), columns = x.shape(column);
  const std::int64_t down = x.strides()[row], across = x.strides()[column];
  if ((across == item || columns == 1) &&
      (rows == 1 || (down >= columns * item && down % item == 0))) {
    return {x, false, rows == 1 ? std::max<std::int64_t>(columns, 1) : down / item};
  }
  if ((down == item || rows == 1) &&
      (columns == 1 || (across >= rows * item && across % item == 0))) {
    return {x, true, columns == 1 ? std::max<std::int64_t>(rows, 1) : across / item};
  }
  return {contiguous(x), false, std::max<std::int64_t>(columns, 1)};
}

// The operands below are of single products of float32, for renga's own kernels.

// Element (i, k) is at data[i * row_step + k * depth_step].
struct LeftRows {
  const float* data;
  std::int64_t row_step, depth_step;
  std::int64_t rows;
};

// The transpose of a right operand: n rows of k elements, `step` apart.
struct WeightRows {
  const float* data;
  std::int64_t step, n, k;
};

// A right operand: k rows of n elements, `step` apart.
struct WeightColumns {
  const float* data;
  std::int64_t step, n, k;
};

// Rows that may lie anywhere, of `width` contiguous numbers each.
struct StackedRows {
  std::vector<const float*> rows;
  std::int64_t width = 0;

  void add(const float* data, std::int64_t step, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) rows.push_back(data + i * step);
  }
};

// An Addend is added to a product: element (i, j) of it is at data[i * row_step + j]. Without data
// nothing is added; the result itself accumulates, a row_step of 0 adds a bias.
struct Addend {
  const float* data = nullptr;
  std::int64_t row_step = 0;

  // Returns the addend of a part of the result which begins at (i, j).
  Addend from(std::int64_t i, std::int64_t j) const {
    return {data == nullptr ? nullptr : data + i * row_step + j, row_step};
  }
};

}  // namespace renga
