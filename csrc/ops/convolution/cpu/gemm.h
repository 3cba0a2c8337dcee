// Convolution to images of few channels by matrix products: each row of the input image is
// multiplied by the weights of all kernel offsets at once, and each pixel of the result adds up the
// products that belong to it (col2im). Kernels that vectorize over the output channels would leave
// most of a vector empty.
#pragma once

#include "ops/convolution/cpu/problem.h"

namespace renga {

// Whether gemm_convolve knows a convolution to images of so many channels.
bool gemm_supports(std::int64_t output_channels, const Window& window);

// Multiplications per pixel and input channel.
std::int64_t gemm_width(std::int64_t output_channels, std::int64_t kernel_offsets);

// Forward and input gradient; images of float32 or bfloat16 with two axes, W of float32, none of
// them empty. The bias may be of any float dtype, or undefined. Products and sums are in float32.
// Results do not depend on the number of threads.
void gemm_convolve(const Problem& problem, const Array& bias);

}  // namespace renga
