// Which of its kernels a convolution runs on, and of what numbers its products are.
#pragma once

#include <string>

#include "ops/matmul/precision.h"
#include "ops/shape/window.h"
#include "tensor/array.h"

namespace renga {

enum class ConvolutionKernel { automatic, direct, winograd, gemm, depthwise };
enum class ConvolutionPass { forward, input_grad, weight_grad };

// What all convolutions run on that can, by its name; "auto", the default, leaves it to their
// shapes. Never to a clock: a program computes the same numbers every time it runs, and on every
// rank. Throws std::invalid_argument for other names.
void use_convolution_kernel(const std::string& name);

struct ConvolutionChoice {
  ConvolutionKernel kernel;  // not `automatic`
  Factors factors;
  // Products of float32 numbers are made of three of bfloat16 numbers each, which are the factors.
  bool three_products = false;
};

// For the convolution of x to y or one of its gradients, of float32 or bfloat16 images. Choices are
// among kernel_choices(), where those loaded win over the shapes.
ConvolutionChoice choose_convolution(ConvolutionPass pass, const Array& x, const Array& W,
                                     const Array& y, const Window& window);

}  // namespace renga
