#include "autograd/backward.h"

#include <map>

#include "autograd/accumulate.h"
#include "autograd/engine.h"
#include "autograd/gradient_buffer.h"
#include "autograd/leaf_uses.h"
#include "autograd/propagated_graphs.h"
#include "autograd/thread_state.h"
#include "tensor/views.h"

namespace renga {
namespace {

thread_local std::map<int, GradientReadyHook> ready_hooks;

// None in a nested pass (a function's backward may call backward()): the outer pass may still add
// to the gradients of leaves.
std::vector<GradientReadyHook> current_hooks() {
  std::vector<GradientReadyHook> hooks;
  if (thread_state.backward_depth > 1) return hooks;
  for (const auto& [handle, hook] : ready_hooks) hooks.push_back(hook);
  return hooks;
}

// The gradient of the leaf `x` in memory that the leaf owns: optimizers and their hooks update
// gradients in place, but operations may return views or one array for several inputs.
Variable owned_gradient(const VariableNode& x, const Variable& gx) {
  return is_owned_gradient(x, gx) ? gx : arithmetic.copy(gx);
}

void check_same_shape(const VariableNode& x, const Shape& before, const Shape& gx) {
  require<std::invalid_argument>(before == gx, "backward: expected the gradient that ",
                                 x.name.empty() ? "a variable" : x.name,
                                 " already has to be of shape ", gx, ", got ", before);
}

// Accumulates gradients in the leaves.
class AccumulatingEngine final : public Engine {
 public:
  AccumulatingEngine(std::span<const Variable> outputs, const BackwardOptions& options)
      : Engine(options) {
    std::vector<Ref<VariableNode>> roots;
    for (const Variable& y : outputs) roots.push_back(y.node());
    for (const auto& root : roots) roots_.insert(root.get());
    hooks_ = current_hooks();
    if (!hooks_.empty()) uses_ = count_leaf_uses(roots);
  }

 private:
  bool accumulates_into_leaves() const override { return true; }
  bool may_defer() const override { return hooks_.empty(); }

  void on_gradient(VariableNode* x, const Variable& gx) override {
    VariableBody* body = x->variable;
    if (x->creator || body == nullptr || roots_.contains(x)) {
      // Intermediate variables keep gradients only on request; roots have theirs already.
      if (x->creator && options_.retain_grad && body != nullptr) body->grad = gx;
      return;
    }
    DeferredGradients* const deferred = thread_state.deferred_gradients;
    if (deferred != nullptr && deferred->has(*x)) deferred->compute();  // terms keep their order
    if (body->grad.defined()) {
      accumulate(*x, body->grad, gx);
    } else {
      body->grad = owned_gradient(*x, gx);
    }
    body->loss_scale = options_.loss_scale;
  }

  // Adds to the gradient of earlier passes: where it is, unless the user may see it.
  void accumulate(const VariableNode& x, Variable& sum, const Variable& gx) const {
    check_same_shape(x, sum.shape(), gx.shape());
    const bool in_place = !options_.create_graph && !sum.node()->creator &&
                          sum.dtype() == gx.dtype() && is_owned_gradient(x, sum);
    if (in_place) {
      arithmetic.add_to(sum.array(), gx.array());
    } else {
      sum = add_gradients(sum, gx);
    }
  }

  void on_node_done(const Node& node) override {
    if (uses_.empty()) return;
    for (const auto& x : node.inputs) {
      const auto found = uses_.find(x.get());
      if (found == uses_.end() || --found->second > 0) continue;
      uses_.erase(found);
      complete(x.get());
      if (x->variable == nullptr) continue;
      const Variable leaf{Ref<VariableBody>(x->variable)};
      for (const auto& hook : hooks_) hook(leaf);
    }
  }

  std::unordered_set<VariableNode*> roots_;
  std::vector<GradientReadyHook> hooks_;
  // The gradient of a leaf is complete when all nodes that read it are done.
  std::unordered_map<const VariableNode*, int> uses_;
};

// Collects the gradients of given variables, leaves or not.
class CollectingEngine final : public Engine {
 public:
  CollectingEngine(std::span<const Variable> outputs, std::span<const Variable> inputs,
                   const BackwardOptions& options)
      : Engine(options) {
    for (const Variable& x : inputs) gradients_.emplace(x.node().get(), Variable());
    mark_needed(outputs);
  }

  Variable gradient(const Variable& x) const { return gradients_.at(x.node().get()); }

 private:
  bool needs_gradient(const VariableNode& x) const override {
    return x.requires_grad && (gradients_.contains(&x) || needed_.contains(x.creator.get()));
  }

  void on_gradient(VariableNode* x, const Variable& gx) override {
    const auto target = gradients_.find(x);
    if (target != gradients_.end()) target->second = gx;
    if (options_.retain_grad && x->variable != nullptr) x->variable->grad = gx;
  }

  // Finds the nodes that depend on one of the variables: only these have to run. Depth first with
  // an explicit stack.
  void mark_needed(std::span<const Variable> outputs) {
    struct Frame {
      Node* node;
      std::size_t next;
    };
    std::unordered_set<Node*> seen;
    std::vector<Frame> stack;
    const auto enter = [&](Node* node) {
      if (node != nullptr && seen.insert(node).second) stack.push_back({node, 0});
    };
    for (const Variable& y : outputs) {
      enter(y.node()->creator.get());
      while (!stack.empty()) {
        Frame& top = stack.back();
        if (top.next < top.node->inputs.size()) {
          enter(top.node->inputs[top.next++]->creator.get());
          continue;
        }
        for (const auto& x : top.node->inputs) {
          if (gradients_.contains(x.get()) || needed_.contains(x->creator.get())) {
            needed_.insert(top.node);
          }
        }
        stack.pop_back();
      }
    }
  }

  std::unordered_map<const VariableNode*, Variable> gradients_;
  std::unordered_set<const Node*> needed_;
};

// A nested pass takes none.
ExtraRoots extra_roots() {
  const bool outermost = thread_state.backward_depth == 0;
  return take_extra_roots != nullptr && outermost ? take_extra_roots() : ExtraRoots();
}

std::vector<Variable> concatenated(std::span<const Variable> xs,
                                   const std::vector<Variable>& more) {
  std::vector<Variable> all(xs.begin(), xs.end());
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Variable scaled_one(const Variable& y, const std::optional<double>& loss_scale) {
  return Variable(arithmetic.full_like(y.array(), loss_scale.value_or(1.0)));
}

// One per input, undefined where no output depends on it.
std::vector<Variable> collect_gradients(std::span<const Variable> outputs,
                                        std::span<const Variable> inputs,
                                        std::span<const Variable> grad_outputs,
                                        const BackwardOptions& options) {
  const ExtraRoots extra = extra_roots();
  CollectingEngine engine(concatenated(outputs, extra.outputs), concatenated(inputs, extra.inputs),
                          options);
  for (const Variable& y : extra.outputs) engine.add_root(y, scaled_one(y, {}));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool given = i < grad_outputs.size() && grad_outputs[i].defined();
    engine.add_root(outputs[i],
                    given ? grad_outputs[i] : scaled_one(outputs[i], options.loss_scale));
  }
  engine.run();
  std::vector<Variable> gradients;
  for (const Variable& x : inputs) gradients.push_back(engine.gradient(x));
  return gradients;
}

}  // namespace

ExtraRoots (*take_extra_roots)() = nullptr;

void backward(std::span<const Variable> roots, const BackwardOptions& options) {
  const std::vector<Variable> outputs = concatenated(roots, extra_roots().outputs);
  AccumulatingEngine engine(outputs, options);
  const bool may_free = !options.retain_grad && !options.create_graph;
  for (const Variable& y : outputs) {
    Variable& gy = y.body()->grad;
    if (!gy.defined() && y.size() <= 1) {
      gy = scaled_one(y, options.loss_scale);
      // Whoever gives a gradient may give another one after an update.
      if (may_free) remember_propagated(y);
    }
    if (gy.defined()) engine.add_root(y, gy);
  }
  engine.run();
  if (options.retain_grad) return;
  for (const Variable& y : outputs) {
    if (y.node()->creator) y.body()->grad = Variable();
  }
}

void accumulate_gradient(const DeferredGradients::Term& term) {
  AccumulatingEngine({}, {.loss_scale = term.loss_scale}).run(term);
}

std::vector<Variable> grad(std::span<const Variable> outputs, std::span<const Variable> inputs,
                           std::span<const Variable> grad_outputs,
                           std::span<const Variable> grad_inputs, const GradOptions& options) {
  std::vector<Variable> gradients = collect_gradients(outputs, inputs, grad_outputs, options);
  const BackpropMode mode(options.create_graph);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Variable& gx = gradients[i];
    if (i < grad_inputs.size()) gx = add_gradients(grad_inputs[i], gx);
    if (!options.set_grad) continue;
    if (gx.defined()) gx = owned_gradient(*inputs[i].node(), gx);
    inputs[i].body()->grad = gx;
  }
  return gradients;
}

int add_gradient_ready_hook(GradientReadyHook hook) {
  static thread_local int next = 0;
  ready_hooks.emplace(next, std::move(hook));
  return next++;
}

void remove_gradient_ready_hook(int handle) { ready_hooks.erase(handle); }

}  // namespace renga
