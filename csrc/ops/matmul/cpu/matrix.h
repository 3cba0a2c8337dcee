// The operands of products as BLAS takes them.
#pragma once

#include <algorithm>
#include <cstddef>

#include "tensor/views.h"

namespace renga {

// A matrix, or a stack of them, whose rows or columns are contiguous, as BLAS requires.
struct Matrix {
  Array array;
  bool transposed = false;  // the columns are contiguous
  std::int64_t leading = 1;

  // Of matrix i, counted along all batch axes.
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

// Of a product: a (m, k), b (k, n) and c (m, n).
struct Sizes {
  std::int64_t m, n, k;
};

}  // namespace renga
