// Convolution to images of few channels by matrix products: each row of the other image is
// multiplied by all taps at once, and a pixel of the result adds up what its taps have made of the
// pixels that they meet (col2im). Kernels that put the result's channels side by side in a vector
// would leave most of it empty.
#pragma once

#include "ops/convolution/packed_weight_cache.h"
#include "ops/matmul/precision.h"
#include "ops/shape/window.h"
#include "tensor/array.h"

namespace renga {

// Whether the kernels below know a convolution to images of so many channels.
bool gemm_convolves(std::int64_t channels, const Window& window);

// Multiplications for each pixel and channel of the other image.
std::int64_t gemm_width(std::int64_t channels, std::int64_t taps);

// As ConvolutionKernels; images of float32 or bfloat16 with two axes, W of float32, none of them
// empty. b may be of any float dtype, or undefined. Products and sums are of float32 numbers.
// Results do not depend on the number of threads.
void gemm_forward(const Array& x, const Array& W, const Array& y, const Window& window, Factors,
                  const Array& b, FilterForms*);
void gemm_input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window,
                     Factors, const Array& b, FilterForms*);

}  // namespace renga
