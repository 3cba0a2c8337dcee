// Matrix products of bfloat16 numbers, on tiles or by oneDNN. Shapes are those of MatmulKernels; no
// matrix is empty.
#pragma once

#include "ops/matmul/packed_weight_cache.h"
#include "tensor/array.h"

namespace renga {

// c (+)= a b, whose operands are rounded to bfloat16; each of them is bfloat16 or float32, and so
// is c. Or c = a b + bias, if that is defined: a row of either dtype. With a `cache`, the packed b
// of a single product may be kept there.
void multiply_bfloat16(const Array& a, const Array& b, const Array& bias, const Array& c,
                       bool accumulate, PackedWeightCache* cache = nullptr);

// c (+)= a b in float32, as three bfloat16 products.
void multiply_bf16x3(const Array& a, const Array& b, const Array& c, bool accumulate);

}  // namespace renga
