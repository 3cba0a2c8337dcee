// Products a bᵀ whose left operand has some tens of rows, as of a linear map in recurrent networks
// and inference. They multiply panels, which are a vector's or two of rows of b, transposed.
// Packing a panel takes as long as the products of 10 to 20 rows, so the panels of weights that are
// used several times are kept (packed_weight_cache.h).
#pragma once

#include "ops/matmul/cpu/operands.h"
#include "tensor/array.h"

namespace renga {

// The panels of b.
Array pack_panels(const WeightRows& b);

// c (+)= a bᵀ, on all threads: c (rows, n) is contiguous. `panels` are those of b, or undefined:
// then each is packed when it is multiplied. The bits are the same.
void multiply_by_panels(const LeftRows& a, const WeightRows& b, const Array& panels, float* c,
                        bool accumulate);

}  // namespace renga
