// Products of matrices on tiles (simd/tiles.h).
#pragma once

#include "ops/matmul/packed_weight_cache.h"
#include "tensor/array.h"

namespace renga {

// c = a b + bias, or c += a b: MatmulKernels::matmul for operands that are rounded to bfloat16,
// summed in float32. Each of the arrays is bfloat16 or float32; `bias` is undefined, or has a
// number for each column and `accumulate` is false. With a `cache`, the packed b of a single
// product may be kept there. Needs simd::has_tiles(). The bits do not depend on the number of
// threads.
void multiply_on_tiles(const Array& a, const Array& b, const Array& bias, const Array& c,
                       bool accumulate, PackedWeightCache* cache = nullptr);

// c (+)= a b for float32 arrays, by bf16x3 (bfloat16_products.h).
void multiply_bf16x3_on_tiles(const Array& a, const Array& b, const Array& c, bool accumulate);

}  // namespace renga
