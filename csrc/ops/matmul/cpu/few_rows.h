// Products a bᵀ where `a` has few rows.
// Most of their time goes into reading b, which is read once, where it is, without packing.
#pragma once

#include <cstdint>

namespace renga {

// Element (i, k) of `a` is at data[i * row_step + k * depth_step].
struct LeftRows {
  const float* data;
  std::int64_t row_step, depth_step;
  std::int64_t rows;
};

// n rows of k elements, `step` apart.
struct WeightRows {
  const float* data;
  std::int64_t step, n, k;
};

// c (+)= a bᵀ, on all threads: c (rows, n) is contiguous.
void multiply_few_rows(const LeftRows& a, const WeightRows& b, float* c, bool accumulate);

}  // namespace renga
