// Convolution of each channel with a filter of its own: as few multiplications per pixel as there
// are taps, so that all depends on reading and writing each pixel once.
#pragma once

#include "ops/convolution/packed_weight_cache.h"
#include "ops/matmul/precision.h"
#include "ops/shape/window.h"
#include "tensor/array.h"

namespace renga {

// Whether the kernels below know a convolution of images to as many channels.
bool depthwise_convolves(const Shape& W, const Window& window);

// As ConvolutionKernels; images of float32 or bfloat16 with two axes, W and gW of float32 and gW
// row-major, none of them empty. b may be of any float dtype, or undefined. Products and sums are
// of float32 numbers. Results do not depend on the number of threads.
void depthwise_forward(const Array& x, const Array& W, const Array& y, const Window& window,
                       Factors, const Array& b, FilterForms*);
void depthwise_input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window,
                          Factors, const Array& b, FilterForms*);
void depthwise_weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window,
                           Factors, const Array& b, FilterForms*);

}  // namespace renga
