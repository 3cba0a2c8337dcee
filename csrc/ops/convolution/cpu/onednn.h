// oneDNN's convolutions.
#pragma once

#include "ops/convolution/problem.h"

namespace renga::convolution {

// float32 on every machine, bfloat16 if the CPU has AVX-512.
bool onednn_supports(Dtype dtype);

// Images of supported dtypes with two or three axes of pixels; the result is dense. oneDNN is
// fastest for channels-last images. This computes the forward pass and the input gradient.
void onednn_convolve(const Problem& problem);
// Computes the weight gradient in one call, whose bits depend on the number of threads (see
// direct.cpp).
void onednn_weight_grad(const Problem& problem);

}  // namespace renga::convolution
