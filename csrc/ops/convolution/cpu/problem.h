// One pass of a convolution, as the CPU's algorithms take it.
#pragma once

#include <cstdint>

#include "ops/shape/window.h"
#include "tensor/array.h"

namespace renga {

enum class Pass : std::uint8_t { forward, input_grad, weight_grad };

// x is the larger image, y the smaller one, or their gradients; W are the weights or their
// gradient. The pass writes one of the three and reads the others. The arrays outlive the problem.
struct Problem {
  // The operands in the order of ConvolutionKernels: x, W -> y; gy, W -> gx; gy, x -> gW.
  static Problem of(Pass pass, const Array& a, const Array& b, const Array& result,
                    const Window& window) {
    switch (pass) {
      case Pass::forward:
        return {pass, a, b, result, window};
      case Pass::input_grad:
        return {pass, result, b, a, window};
      default:
        return {pass, b, result, a, window};
    }
  }

  const Array& first() const { return pass == Pass::forward ? x : y; }
  const Array& second() const { return pass == Pass::weight_grad ? x : W; }
  const Array& result() const {
    return pass == Pass::forward ? y : pass == Pass::input_grad ? x : W;
  }

  Pass pass;
  const Array &x, &W, &y;
  const Window& window;
};

}  // namespace renga
