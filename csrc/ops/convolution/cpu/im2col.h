// Convolution by copying every window's elements side by side (im2col) and one matrix product per
// image: for dtypes that oneDNN does not know.
#pragma once

#include "ops/shape/window.h"
#include "tensor/array.h"

namespace renga {

// As ConvolutionKernels; all arrays of one dtype.
void unfolded_forward(const Array& x, const Array& W, const Array& y, const Window& window);
void unfolded_input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window);
void unfolded_weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window);

}  // namespace renga
