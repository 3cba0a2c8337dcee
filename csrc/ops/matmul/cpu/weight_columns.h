// Products a b whose left operand has some tens of rows, as the gradients of inputs in recurrent
// networks. A block of rows of b is multiplied where it is, while the next one is prefetched in the
// order of memory.
#pragma once

#include "ops/matmul/cpu/operands.h"

namespace renga {

// Whether the product is faster so than by oneDNN, which is slow wherever b comes from memory: with
// more rows that does not matter. Few rows are better left to it while b stays in the second-level
// cache.
inline bool gains_by_columns(std::int64_t rows, std::int64_t weights) {
  return rows > 1 && rows <= 48 && weights >= (rows < 8 ? 1 << 19 : 1 << 16);
}

// c (+)= a b, on all threads: c (rows, n) is contiguous.
void multiply_by_columns(const LeftRows& a, const WeightColumns& b, float* c, bool accumulate);

}  // namespace renga
