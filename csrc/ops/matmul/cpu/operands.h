// The operands of products of matrices of floats, as the kernels take them.
#pragma once

#include <cstdint>

namespace renga {

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

// What is added to a product: element (i, j) of it is at data[i * row_step + j]. Nothing without
// data; the result itself accumulates, a row_step of 0 adds a bias.
struct Addend {
  const float* data = nullptr;
  std::int64_t row_step = 0;

  // That of a part of the result which begins at (i, j).
  Addend from(std::int64_t i, std::int64_t j) const {
    return {data == nullptr ? nullptr : data + i * row_step + j, row_step};
  }
};

}  // namespace renga
