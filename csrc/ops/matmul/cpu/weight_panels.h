// Products whose left operand has some tens of rows, as of linear maps in recurrent networks and in
// inference. They multiply panels, which are two vectors' columns of the right operand, and read
// each of them once, in an order in which the next ones are prefetched.
#pragma once

#include "ops/matmul/cpu/operands.h"
#include "tensor/array.h"

namespace renga {

// Whether a b of so many rows is faster so than by oneDNN, which is slow wherever b comes from
// memory: with more rows that does not matter. Few rows are better left to it while b stays in the
// second-level cache.
inline bool gains_by_columns(std::int64_t rows, std::int64_t weights) {
  return rows > 1 && rows <= 48 && weights >= (rows < 8 ? 1 << 19 : 1 << 16);
}

// Panels of a right operand (k, n), in the order in which they are multiplied. Packing b takes as
// long as some rows' products with it, so the panels of weights that are used several times are
// kept (packed_weight_cache.h).
Array pack_panels(const WeightColumns& b);
Array pack_panels(const WeightRows& b);

// c = a b + addend, on all threads: c (rows, n) is contiguous. `panels` are those of b, or
// undefined: then columns are multiplied where they are, and rows transposed panel by panel. The
// bits are the same.
void multiply_by_panels(const LeftRows& a, const WeightColumns& b, const Array& panels, float* c,
                        const Addend& addend);
void multiply_by_panels(const LeftRows& a, const WeightRows& b, const Array& panels, float* c,
                        const Addend& addend);

}  // namespace renga
