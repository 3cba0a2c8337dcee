// Products a b whose left operand has some tens of rows, as the gradients of inputs in recurrent
// networks. A block of rows of b is multiplied where it is, while the next one is prefetched in the
// order of memory.
#pragma once

#include "ops/matmul/cpu/few_rows.h"

namespace renga {

// k rows of n elements, `step` apart.
struct WeightColumns {
  const float* data;
  std::int64_t step, n, k;
};

// Whether b is so large that reading it from memory takes longer than the product.
inline bool gains_by_columns(std::int64_t rows, std::int64_t weights) {
  return rows >= 16 && rows <= 64 && weights >= 1 << 21;
}

// c (+)= a b, on all threads: c (rows, n) is contiguous.
void multiply_by_columns(const FewRows& a, const WeightColumns& b, float* c, bool accumulate);

}  // namespace renga
