// Renga's own kernels of float32 products. They run on all threads, write a contiguous c, and their
// bits do not depend on the number of threads. selection.cpp says which products they are best for.
#pragma once

#include "ops/matmul/cpu/operands.h"
#include "tensor/array.h"

namespace renga {

// c = a bᵀ + addend, where `a` has few rows. Most of the time goes into reading b, which is read
// once, where it is, without packing.
void multiply_few_rows(const LeftRows& a, const WeightRows& b, float* c, const Addend& addend);

// Panels of a right operand, two vectors' columns each, in the order in which they are multiplied.
// Packing b takes as long as some rows' products with it, so the panels of weights that are used
// several times are kept (packed_weight_cache.h).
Array pack_panels(const WeightColumns& b);
Array pack_panels(const WeightRows& b);

// c = a b + addend, where `a` has some tens of rows, as in recurrent networks and in inference.
// Each panel is read once, in an order in which the next ones are prefetched. `panels` are those of
// b, or undefined: then columns are multiplied where they are, and rows transposed panel by panel.
// The bits are the same.
void multiply_by_panels(const LeftRows& a, const WeightColumns& b, const Array& panels, float* c,
                        const Addend& addend);
void multiply_by_panels(const LeftRows& a, const WeightRows& b, const Array& panels, float* c,
                        const Addend& addend);

// c = a b + addend, where `a` has many rows, which are contiguous (depth_step 1). Blocks of b are
// packed into panels that stay in the second-level cache (Goto and van de Geijn, "Anatomy of
// high-performance matrix multiplication", ACM Transactions on Mathematical Software, 2008).
void multiply_by_blocks(const LeftRows& a, const WeightRows& b, float* c, const Addend& addend);
void multiply_by_blocks(const LeftRows& a, const WeightColumns& b, float* c, const Addend& addend);

// c = aᵀ b + addend, as the gradients of weights are, summed over as many rows of `a` and of b.
// Blocks of b are packed into such panels; groups of columns of `a` are copied while the groups
// before them are multiplied.
void multiply_stacked_rows(const StackedRows& a, const StackedRows& b, float* c,
                           const Addend& addend);

// c = a b, or c += a b, on the calling thread: of few numbers, of which registers hold a tile of c.
// That is all that pairs of a stack need, which threads share out. Rows of b are added one by one;
// of its transpose the rows of `a` have to be contiguous (depth_step 1).
void multiply_small_product(const LeftRows& a, const WeightColumns& b, float* c, bool accumulate);
void multiply_small_product(const LeftRows& a, const WeightRows& b, float* c, bool accumulate);

}  // namespace renga
