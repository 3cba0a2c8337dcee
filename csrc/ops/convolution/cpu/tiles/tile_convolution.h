// Convolutions on tiles (simd/tiles.h): products of pixels and filters where they are, without a
// copy of each pixel for each element of the filter. Operands are rounded to bfloat16 and summed in
// float32. These convolutions are fastest for channels-last images. Results do not depend on the
// number of threads.
#pragma once

#include "ops/convolution/problem.h"

namespace renga::convolution {

// Whether there are tiles, and the channels of groups fill them. The images may be of any dtype.
bool tiles_support(const Problem& problem);

namespace tiles {

void weight_grad(const Problem& problem);

}  // namespace tiles
}  // namespace renga::convolution
