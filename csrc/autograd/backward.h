// Backward passes: backward() accumulates gradients in leaves, grad() returns them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "autograd/pass_context.h"

namespace renga {

struct BackwardOptions {
  bool retain_grad = false;   // also store the gradients of intermediate variables
  bool create_graph = false;  // record the backward pass itself (double backpropagation)
  std::optional<double> loss_scale = {};
};

// Adds to the gradient of every leaf that `outputs` depend on. The pass starts from the outputs'
// gradients; that of an output of one element defaults to one.
void backward(std::span<const Variable> outputs, const BackwardOptions& options,
              PassContext& context);
inline void backward(std::span<const Variable> outputs, const BackwardOptions& options = {}) {
  PassContext alone;
  backward(outputs, options, alone);
}

// Throws std::invalid_argument for a variable of several numbers without a gradient, from which
// nothing gets one.
void check_loss(const Variable& loss);

inline void backward(const Variable& loss) {
  check_loss(loss);
  backward(std::span(&loss, 1));
}

struct GradOptions : BackwardOptions {
  bool set_grad = false;  // also store the gradients in the inputs
};

// The gradients of `inputs`, undefined where no output depends on one; leaves are left unchanged.
// `grad_outputs` and `grad_inputs` may be empty or hold undefined entries.
std::vector<Variable> grad(std::span<const Variable> outputs, std::span<const Variable> inputs,
                           std::span<const Variable> grad_outputs,
                           std::span<const Variable> grad_inputs, const GradOptions& options,
                           PassContext& context);
inline std::vector<Variable> grad(std::span<const Variable> outputs,
                                  std::span<const Variable> inputs,
                                  std::span<const Variable> grad_outputs = {},
                                  std::span<const Variable> grad_inputs = {},
                                  const GradOptions& options = {}) {
  PassContext alone;
  return grad(outputs, inputs, grad_outputs, grad_inputs, options, alone);
}

// The gradients of compose(xs), recorded in the graph: for second derivatives of a fused operation.
// `gys` may be undefined.
using Compose = std::function<std::vector<Variable>(std::span<const Variable>)>;
std::vector<Variable> recorded_gradients(const Compose& compose, std::span<const Variable> xs,
                                         std::span<const Variable> gys);

// Computes a term that a pass has left out, and adds it to the gradient of its leaf.
void accumulate_gradient(const PostponedGradients::Term& term, PassContext& context);

// Frees what graphs saved for backward() that only losses reach from which passes started that gave
// gradients to these leaves. An optimizer calls it before its update: a training loop whose
// variable `loss` lives until the next loss replaces it would otherwise keep the arrays of two
// steps. What depends on a variable that somebody else holds stays as it is. The nodes stay, so
// that the graph can still be drawn; propagating through them again raises an error.
void free_propagated_graphs(std::span<const Variable> leaves);

}  // namespace renga
