// Convolutions by kernels of our own, for what cuDNN does not have: float64, and images of more
// than three axes of pixels.
#pragma once

#include "ops/convolution/problem.h"

namespace renga::convolution {

// Arrays are all float32 or all float64, with any strides.
void run_direct(const Problem& problem);

}  // namespace renga::convolution
