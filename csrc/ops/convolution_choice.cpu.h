// Which of its kernels a convolution of float32 images runs on.
#pragma once

#include "ops/window.h"
#include "tensor/array.h"

namespace renga {

enum class ConvolutionKernel { automatic, direct, winograd };

// What all convolutions run on that can; `automatic`, the default, leaves it to their shapes. Never
// to a clock: a program computes the same numbers every time it runs, and on every rank.
void use_convolution_kernel(ConvolutionKernel kernel);

// For the convolution of x to y or one of its gradients.
bool by_winograd(const Array& x, const Array& W, const Array& y, const Window& window);

}  // namespace renga
