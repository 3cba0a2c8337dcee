// Convolutions on tiles (simd/tiles.h): products of pixels and filters where they are, without a
// copy of each pixel for each element of the filter.
#pragma once

#include "ops/convolution/cpu/problem.h"
#include "ops/matmul/packed_weight_cache.h"

namespace renga {

// Whether a problem with images of float32 or bfloat16 is computed so where there are tiles.
bool tiles_support(const Problem& problem);

// The forward pass or the input gradient. Operands are rounded to bfloat16 and summed in float32.
// The bias may be of any float dtype, or undefined; the cache may be nullptr. Fastest for
// channels-last images. Results do not depend on the number of threads.
void tile_convolve(const Problem& problem, const Array& bias, PackedWeightCache* cache);

// The weight gradient; gW is row-major.
void tile_weight_grad(const Problem& problem);

}  // namespace renga
