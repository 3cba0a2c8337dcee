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

}  // namespace renga
