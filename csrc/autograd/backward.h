// Backward passes: backward() accumulates gradients in leaves, grad() returns them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "autograd/node.h"

namespace renga {

struct BackwardOptions {
  bool retain_grad = false;   // also store the gradients of intermediate variables
  bool create_graph = false;  // record the backward pass itself (double backpropagation)
  std::optional<double> loss_scale;
};

// Adds to the gradient of every leaf that `outputs` depend on. The pass starts from the outputs'
// gradients; that of an output of one element defaults to one.
void backward(std::span<const Variable> outputs, const BackwardOptions& options);

struct GradOptions : BackwardOptions {
  bool set_grad = false;  // also store the gradients in the inputs
};

// The gradients of `inputs`, undefined where no output depends on one; leaves are left unchanged.
// `grad_outputs` and `grad_inputs` may be empty or hold undefined entries.
std::vector<Variable> grad(std::span<const Variable> outputs, std::span<const Variable> inputs,
                           std::span<const Variable> grad_outputs,
                           std::span<const Variable> grad_inputs, const GradOptions& options);

// Extra roots of a backward pass, and extra inputs that it has to reach: pending communications.
// Other ranks wait for them, so they run even if the loss does not depend on them. The next
// backward pass of this thread takes them. Set by the binding.
struct ExtraRoots {
  std::vector<Variable> outputs;
  std::vector<Variable> inputs;
};
extern ExtraRoots (*take_extra_roots)();

// Called with a leaf as soon as its gradient is complete in this thread's backward(). A nested
// backward() calls no hooks, and may add to the gradient later. Returns a handle for
// remove_gradient_ready_hook.
using GradientReadyHook = std::function<void(const Variable& leaf)>;
int add_gradient_ready_hook(GradientReadyHook hook);
void remove_gradient_ready_hook(int handle);

// Called before (`done` = false) and after each node's backward on this thread, for function hooks.
using BackwardObserver = void (*)(Node& node, std::span<const Variable> gys, bool done);
void set_backward_observer(BackwardObserver observer);
bool has_backward_observer();

}  // namespace renga
