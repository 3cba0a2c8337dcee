// Convolution of 3x3 filters at stride 1 by Winograd's F(4x4, 3x3): a quarter of the
// multiplications, at five to ten times the rounding error of a direct sum.
#pragma once

#include "ops/window.h"
#include "tensor/array.h"

namespace renga {

// Whether the kernels below know a convolution: 3x3 taps, stride and dilation 1, one group, pads of
// at most 2, and channels in whole panels of 32.
bool winograd_convolves(const Shape& W, const Window& window);

// As ConvolutionKernels; all arrays of float32, none of them empty, gW row-major. Fastest where
// images are channels last. Results do not depend on the number of threads.
void winograd_forward(const Array& x, const Array& W, const Array& y, const Window& window);
void winograd_input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window);
void winograd_weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window);

}  // namespace renga
