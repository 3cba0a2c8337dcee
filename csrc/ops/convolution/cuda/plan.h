// Convolutions as cuDNN's execution plans, which are selected once for each problem and kept.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/shape/window.h"
#include "tensor/array.h"

namespace renga {

// In bytes, of the addresses of a problem's arrays.
inline constexpr std::int64_t kPlanAlignment = 16;

enum class ConvolutionPass : std::uint8_t { forward, input_grad, weight_grad };

// One of the passes of y = x * W: two of the three are its operands. Images and weights are
// channels-last, with 2 or 3 axes of pixels, and start at multiples of kPlanAlignment.
struct ConvolutionProblem {
  ConvolutionPass pass;
  Array x, W, y;
  Window window;
};

// Runs the problem on the current stream of its device; false where cuDNN has no engine for it, or
// is not to be used.
bool run_plan(const ConvolutionProblem& problem);

// How many plans are kept.
std::size_t convolution_plans();

}  // namespace renga
