// Which algorithm computes a pass of a convolution, and in which type it multiplies.
#pragma once

#include <string>

#include "ops/convolution/cpu/problem.h"
#include "ops/matmul/precision.h"

namespace renga {

enum class ConvolutionAlgorithm : std::uint8_t {
  automatic,
  direct,
  winograd,
  gemm,
  depthwise,
  tiles
};

// Makes all convolutions that can run on one algorithm: "direct", "winograd", "gemm" or
// "depthwise". "auto", the default, selects by their shapes, never by a clock: a program computes
// the same numbers in every run and on every rank. Throws std::invalid_argument for other names.
void use_convolution_algorithm(const std::string& name);

struct SelectedAlgorithm {
  ConvolutionAlgorithm algorithm;  // not `automatic`
  ComputeType compute_type;
  // Each float32 product is computed as three bfloat16 products; the compute type is bfloat16.
  bool bf16x3 = false;
};

// For a problem with float32 or bfloat16 images. Algorithms loaded into the algorithm cache take
// precedence over the cost model.
SelectedAlgorithm select_algorithm(const Problem& problem);

}  // namespace renga
