// Products of matrices of floats or doubles of any strides, added to a part of a larger one: what
// blocked factorizations and products of float64 are made of.
#pragma once

#include <cstdint>

namespace renga {

// Element (i, j) is at data[i * row_step + j * column_step].
template <class T>
struct Strided {
  const T* data;
  std::int64_t row_step, column_step;

  Strided from(std::int64_t i, std::int64_t j) const {
    return {data + i * row_step + j * column_step, row_step, column_step};
  }
  Strided transposed() const { return {data, column_step, row_step}; }
};

// c = factor a b, or c += factor a b, for a (m, k), b (k, n) and rows of c that are ldc apart, on
// the calling thread. An element's bits depend on its row of a, its column of b and k alone.
template <class T>
void gemm(const Strided<T>& a, const Strided<T>& b, T* c, std::int64_t ldc, std::int64_t m,
          std::int64_t n, std::int64_t k, T factor, bool accumulate);

}  // namespace renga
