// Products of stacked rows, as the gradients of weights are: c = aᵀ b, summed over rows of `a` and
// b that may lie anywhere. Blocks of b are packed into panels that stay in the second-level cache,
// as those of weights (weight_blocks.h). Groups of columns of `a` are copied while the groups
// before them are multiplied.
#pragma once

#include <vector>

#include "ops/matmul/cpu/operands.h"

namespace renga {

// `width` numbers each, contiguous.
struct StackedRows {
  std::vector<const float*> rows;
  std::int64_t width = 0;

  void add(const float* data, std::int64_t step, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) rows.push_back(data + i * step);
  }
};

// Whether rows that are so many numbers apart share their places in the first-level cache. There
// oneDNN is 1 to 15 % slower.
inline bool share_cache_sets(std::int64_t step) { return step % 1024 == 0; }

// c = aᵀ b + addend, on all threads: as many rows in `a` and b, c (a.width, b.width) is contiguous.
// The bits do not depend on the number of threads.
void multiply_stacked_rows(const StackedRows& a, const StackedRows& b, float* c,
                           const Addend& addend);

}  // namespace renga
