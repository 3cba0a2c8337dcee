// Products a bᵀ with many rows. Blocks of b are transposed into panels that stay in the
// second-level cache (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
// ACM Transactions on Mathematical Software, 2008).
#pragma once

#include "ops/matmul/cpu/operands.h"

namespace renga {

// Whether the product is faster so than by oneDNN, which transposes less fast, once for each of the
// blocks that the threads share out (blocking.h).
inline bool gains_by_blocks(const LeftRows& a, const WeightRows& b) {
  return a.depth_step == 1 && a.rows > 128 && b.n >= 64 && b.k >= 48;
}

// c = a bᵀ + addend, on all threads: rows of `a` (depth_step 1) and c (a.rows, b.n) are contiguous.
// The bits do not depend on the number of threads.
void multiply_by_blocks(const LeftRows& a, const WeightRows& b, float* c, const Addend& addend);

}  // namespace renga
