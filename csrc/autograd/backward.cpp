#include "autograd/backward.h"

#include <map>

#include "autograd/accumulate.h"
#include "autograd/gradient_place.h"
#include "autograd/walk.h"
#include "tensor/views.h"

namespace renga {
namespace {

thread_local std::map<int, GradientReadyHook> ready_hooks;

// None for a walk inside another one (a function may call backward() on its way back): what it adds
// to a leaf is not all that the leaf gets.
std::vector<GradientReadyHook> current_hooks() {
  std::vector<GradientReadyHook> hooks;
  if (open_walks() > 1) return hooks;
  for (const auto& [number, hook] : ready_hooks) hooks.push_back(hook);
  return hooks;
}

// The gradient of the leaf `x` in memory that only the leaf has: optimizers and their hooks change
// gradients in place. Operations may return views, or one array for several of their inputs.
Variable owned_gradient(const VariableNode& x, const Variable& gx) {
  const VariableBody& body = *gx.body();
  const Array& array = gx.array();
  const bool owned = body.use_count() == 1 && body.is_private() && elements_are_apart(array);
  return owned || lies_in_place(x, array) ? gx : arithmetic.copy(gx);
}

void check_same_shape(const VariableNode& x, const Shape& before, const Shape& gx) {
  require<std::invalid_argument>(before == gx, "backward: expected the gradient that ",
                                 x.name.empty() ? "a variable" : x.name,
                                 " has already to be of shape ", gx, ", got ", before);
}

// Leaves the gradients with the leaves.
class LeafWalk final : public Walk {
 public:
  LeafWalk(std::span<const Variable> outputs, const BackwardOptions& options) : Walk(options) {
    for (const Variable& y : outputs) roots_.insert(y.node().get());
    hooks_ = current_hooks();
    if (!hooks_.empty()) count_uses(outputs);
  }

 private:
  bool keeps_gradients() const override { return true; }

  void finished(VariableNode* x, const Variable& gx) override {
    VariableBody* body = x->variable;
    if (x->creator || body == nullptr || roots_.contains(x)) {
      // In between: the gradient stays only where asked for. An output has its own already.
      if (x->creator && options_.retain_grad && body != nullptr) body->grad = gx;
      return;
    }
    if (body->grad.defined()) {
      check_same_shape(*x, body->grad.shape(), gx.shape());
      body->grad = add_gradients(body->grad, gx);
    } else {
      body->grad = owned_gradient(*x, gx);
    }
    body->loss_scale = options_.loss_scale;
  }

  // Counts for every leaf how many times a function reads it: its gradient is complete when all of
  // these functions are done.
  void count_uses(std::span<const Variable> outputs) {
    std::vector<Node*> open;
    std::unordered_set<Node*> seen;
    const auto meet = [&](const VariableNode& x) {
      if (x.creator && seen.insert(x.creator.get()).second) open.push_back(x.creator.get());
    };
    for (const Variable& y : outputs) meet(*y.node());
    while (!open.empty()) {
      Node* node = open.back();
      open.pop_back();
      for (const auto& x : node->inputs) {
        if (!x->requires_grad) continue;
        if (x->creator) {
          meet(*x);
        } else {
          ++uses_[x.get()];
        }
      }
    }
  }

  void used(const Node& node) override {
    if (uses_.empty()) return;
    for (const auto& x : node.inputs) {
      const auto found = uses_.find(x.get());
      if (found == uses_.end() || --found->second > 0) continue;
      uses_.erase(found);
      finish(x.get());
      if (x->variable == nullptr) continue;
      const Variable leaf{Ref<VariableBody>(x->variable)};
      for (const auto& hook : hooks_) hook(leaf);
    }
  }

  std::unordered_set<VariableNode*> roots_;
  std::vector<GradientReadyHook> hooks_;
  std::unordered_map<VariableNode*, int> uses_;
};

// Finds the gradients of some variables, wherever they are in the graph.
class GradWalk final : public Walk {
 public:
  GradWalk(std::span<const Variable> outputs, std::span<const Variable> inputs,
           const BackwardOptions& options)
      : Walk(options) {
    for (const Variable& x : inputs) found_.emplace(x.node().get(), Variable());
    mark(outputs);
  }

  Variable gradient(const Variable& x) const { return found_.at(x.node().get()); }

 private:
  bool wants(const VariableNode& x) const override {
    return x.requires_grad && (found_.contains(&x) || useful_.contains(x.creator.get()));
  }

  void finished(VariableNode* x, const Variable& gx) override {
    const auto target = found_.find(x);
    if (target != found_.end()) target->second = gx;
    if (options_.retain_grad && x->variable != nullptr) x->variable->grad = gx;
  }

  // Finds the nodes from which an input is reached: only through these does a gradient matter.
  // Depth first with a stack of our own; a node is useful if one of its inputs is.
  void mark(std::span<const Variable> outputs) {
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
          if (found_.contains(x.get()) || useful_.contains(x->creator.get())) {
            useful_.insert(top.node);
          }
        }
        stack.pop_back();
      }
    }
  }

  std::unordered_map<const VariableNode*, Variable> found_;
  std::unordered_set<const Node*> useful_;
};

// A way back inside another one is that one's own affair.
Companions companions() {
  return take_companions != nullptr && open_walks() == 0 ? take_companions() : Companions();
}

std::vector<Variable> joined(std::span<const Variable> xs, const std::vector<Variable>& more) {
  std::vector<Variable> all(xs.begin(), xs.end());
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Variable scaled_one(const Variable& y, const std::optional<double>& loss_scale) {
  return Variable(arithmetic.full_like(y.array(), loss_scale.value_or(1.0)));
}

// As many as inputs, undefined where an output does not depend on one.
std::vector<Variable> find_gradients(std::span<const Variable> outputs,
                                     std::span<const Variable> inputs,
                                     std::span<const Variable> grad_outputs,
                                     const BackwardOptions& options) {
  const Companions more = companions();
  GradWalk walk(joined(outputs, more.outputs), joined(inputs, more.inputs), options);
  for (const Variable& y : more.outputs) walk.start(y, scaled_one(y, {}));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool given = i < grad_outputs.size() && grad_outputs[i].defined();
    walk.start(outputs[i], given ? grad_outputs[i] : scaled_one(outputs[i], options.loss_scale));
  }
  walk.run();
  std::vector<Variable> found;
  for (const Variable& x : inputs) found.push_back(walk.gradient(x));
  return found;
}

}  // namespace

Companions (*take_companions)() = nullptr;

void backward(std::span<const Variable> asked, const BackwardOptions& options) {
  const std::vector<Variable> outputs = joined(asked, companions().outputs);
  LeafWalk walk(outputs, options);
  for (const Variable& y : outputs) {
    Variable& gy = y.body()->grad;
    if (!gy.defined() && y.size() <= 1) gy = scaled_one(y, options.loss_scale);
    if (gy.defined()) walk.start(y, gy);
  }
  walk.run();
  if (options.retain_grad) return;
  for (const Variable& y : outputs) {
    if (y.node()->creator) y.body()->grad = Variable();
  }
}

std::vector<Variable> grad(std::span<const Variable> outputs, std::span<const Variable> inputs,
                           std::span<const Variable> grad_outputs,
                           std::span<const Variable> grad_inputs, const GradOptions& options) {
  std::vector<Variable> found = find_gradients(outputs, inputs, grad_outputs, options);
  const BackpropMode mode(options.create_graph);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Variable& gx = found[i];
    if (i < grad_inputs.size()) gx = add_gradients(grad_inputs[i], gx);
    if (!options.set_grad) continue;
    if (gx.defined()) gx = owned_gradient(*inputs[i].node(), gx);
    inputs[i].body()->grad = gx;
  }
  return found;
}

int add_gradient_ready_hook(GradientReadyHook hook) {
  static thread_local int next = 0;
  ready_hooks.emplace(next, std::move(hook));
  return next++;
}

void remove_gradient_ready_hook(int number) { ready_hooks.erase(number); }

}  // namespace renga
