// The way back through the graph.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "autograd/node.h"

namespace renga {

struct BackwardOptions {
  bool retain_grad = false;   // keep the gradients of variables in between
  bool create_graph = false;  // record the backward pass itself (double backpropagation)
  std::optional<double> loss_scale;
};

// Adds to the gradient of every leaf that `outputs` depend on. The outputs' own gradients are the
// start; a single-element output without one starts from one.
void backward(std::span<const Variable> outputs, const BackwardOptions& options);

struct GradOptions : BackwardOptions {
  bool set_grad = false;  // also store the gradients found in the inputs
};

// The gradients of `inputs`, undefined where an output does not depend on one; no leaf is touched.
// `grad_outputs` and `grad_inputs` may be empty or hold undefined entries.
std::vector<Variable> grad(std::span<const Variable> outputs, std::span<const Variable> inputs,
                           std::span<const Variable> grad_outputs,
                           std::span<const Variable> grad_inputs, const GradOptions& options);

// What a way back starts from besides its outputs, and has to reach besides its leaves or inputs:
// communications, whose other ranks wait, although nothing else may lead to them. Each is taken by
// one way back of this thread only. The binding knows of them.
struct Companions {
  std::vector<Variable> outputs;
  std::vector<Variable> inputs;
};
extern Companions (*take_companions)();

// Called with a leaf as soon as no function of this thread's running backward() can add to its
// gradient any more. A backward() inside of another one calls no hook, and may add to a leaf later.
// Returns a number for remove_gradient_ready_hook.
using GradientReadyHook = std::function<void(const Variable& leaf)>;
int add_gradient_ready_hook(GradientReadyHook hook);
void remove_gradient_ready_hook(int number);

// Called around each node's backward on this thread; `done` tells which side. For function hooks.
using BackwardObserver = void (*)(Node& node, std::span<const Variable> gys, bool done);
void set_backward_observer(BackwardObserver observer);
bool has_backward_observer();

}  // namespace renga
