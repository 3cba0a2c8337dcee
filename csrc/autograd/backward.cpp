#include "autograd/backward.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "autograd/engine.h"

namespace renga {
namespace {

// The gradient of the leaf `x` in memory that the leaf owns: optimizers and their hooks update
// gradients in place, but operations may return views or one array for several inputs.
Variable owned_gradient(const VariableNode& x, const Variable& gx, const GradientBuffers& buffers) {
  return buffers.is_owned(x, gx) ? gx : arithmetic.copy(gx);
}

void check_same_shape(const VariableNode& x, const Shape& before, const Shape& gx) {
  require<std::invalid_argument>(before == gx, "backward: expected the gradient that ",
                                 x.name.empty() ? "a variable" : x.name,
                                 " already has to be of shape ", gx, ", got ", before);
}

// Accumulates gradients in the leaves.
class AccumulatingEngine final : public Engine {
 public:
  // `pass` tells leaves which pass gave them gradients.
  AccumulatingEngine(std::span<const Variable> outputs, const BackwardOptions& options,
                     PassContext& context, Ref<Propagation> pass)
      : Engine(options, context), pass_(std::move(pass)) {
    std::vector<Ref<VariableNode>> roots;
    for (const Variable& y : outputs) roots.push_back(y.node("backward"));
    for (const auto& root : roots) roots_.insert(root.get());
    // An outer pass may still add to the gradients of leaves.
    if (context_.running > 1 || context_.hooks.empty()) return;
    for (const auto& [handle, hook] : context_.hooks) hooks_.push_back(hook);
    uses_ = count_leaf_uses(roots);
  }

 private:
  bool accumulates_into_leaves() const override { return true; }
  bool may_postpone() const override { return hooks_.empty(); }

  void on_gradient(VariableNode* x, const Variable& gx) override {
    VariableBody* body = x->variable;
    if (x->creator || body == nullptr || roots_.contains(x)) {
      // Intermediate variables keep gradients only on request; roots have theirs already.
      if (x->creator && options_.retain_grad && body != nullptr) body->grad = gx;
      return;
    }
    PostponedGradients* const waiting = context_.postponed;
    if (waiting != nullptr && waiting->has(*x))
      waiting->compute(context_);  // terms keep their order
    body->note_added_grad();
    if (body->grad.defined()) {
      accumulate(*x, body->grad, gx);
      if (body->pass && body->pass != pass_) pass_->include(*body->pass);
    } else {
      body->grad = owned_gradient(*x, gx, context_.buffers);
    }
    body->pass = pass_;
  }

  // Adds to the gradient of earlier passes: where it is, unless the user may see it.
  void accumulate(const VariableNode& x, Variable& sum, const Variable& gx) const {
    check_same_shape(x, sum.shape(), gx.shape());
    const bool in_place = !options_.create_graph && !sum.node()->creator &&
                          sum.dtype() == gx.dtype() && context_.buffers.is_owned(x, sum);
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

  const Ref<Propagation> pass_;
  std::unordered_set<VariableNode*> roots_;
  std::vector<GradientReadyHook> hooks_;
  // The gradient of a leaf is complete when all nodes that read it are done.
  std::unordered_map<const VariableNode*, int> uses_;
};

// Collects the gradients of given variables, leaves or not.
class CollectingEngine final : public Engine {
 public:
  CollectingEngine(std::span<const Variable> outputs, std::span<const Variable> inputs,
                   const BackwardOptions& options, PassContext& context)
      : Engine(options, context) {
    for (const Variable& x : inputs) gradients_.emplace(x.node("grad").get(), Variable());
    mark_needed(outputs);
  }

  // The gradient that is given for an input flows on to inputs that it was computed from, but only
  // if the outputs depend on it.
  void add_given(const Variable& x, const Variable& gx) {
    add_root(x, gx, needed_.contains(x.node()->creator.get()));
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
      enter(y.node("grad")->creator.get());
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

// Takes the extra roots of this pass; a nested pass takes none.
std::vector<ExtraRoot> take_extra_roots(PassContext& context) {
  std::vector<ExtraRoot> roots;
  if (context.running > 0) return roots;
  for (auto& [name, root] : std::exchange(context.extra_roots, {})) roots.push_back(root);
  return roots;
}

std::vector<Variable> with_extra(std::span<const Variable> xs, const std::vector<ExtraRoot>& extra,
                                 Variable ExtraRoot::*which) {
  std::vector<Variable> all(xs.begin(), xs.end());
  for (const ExtraRoot& root : extra) all.push_back(root.*which);
  return all;
}

// Visits nodes after all that depend on them.
class GraphRelease {
 public:
  // Visits the creator of `x`, which nothing outside the visited part of the graph uses, once this
  // holds for all its outputs.
  void add(const VariableNode& x) {
    Node* const node = x.creator.get();
    if (node == nullptr) return;
    const auto alive =
        node->outputs.size() - static_cast<std::size_t>(std::ranges::count(node->outputs, nullptr));
    // Its outputs are its owners, and gradients that are still to be computed.
    const bool is_unused =
        ++unused_outputs_[node] == alive && node->use_count() == static_cast<long>(alive);
    if (is_unused) queue_.emplace(node->rank, node);
  }

  void run() {
    while (!queue_.empty()) {
      Node& node = *queue_.top().second;
      queue_.pop();
      node.free_saved();
      for (const auto& x : node.inputs) {
        const bool is_unused = ++uses_[x.get()] == x->use_count() && x->variable == nullptr;
        if (is_unused) add(*x);
      }
    }
  }

 private:
  std::priority_queue<std::pair<int, Node*>> queue_;  // by rank
  std::unordered_map<const Node*, std::size_t> unused_outputs_;
  std::unordered_map<const VariableNode*, long> uses_;  // by visited nodes
};

Variable scaled_one(const Variable& y, const std::optional<double>& loss_scale) {
  return Variable(arithmetic.full_like(y.array(), loss_scale.value_or(1.0)));
}

// One per input, undefined where no output depends on it.
std::vector<Variable> collect_gradients(std::span<const Variable> outputs,
                                        std::span<const Variable> inputs,
                                        std::span<const Variable> grad_outputs,
                                        std::span<const Variable> grad_inputs,
                                        const BackwardOptions& options, PassContext& context) {
  const std::vector<ExtraRoot> extra = take_extra_roots(context);
  CollectingEngine engine(with_extra(outputs, extra, &ExtraRoot::output),
                          with_extra(inputs, extra, &ExtraRoot::input), options, context);
  for (std::size_t i = 0; i < grad_inputs.size(); ++i) {
    if (grad_inputs[i].defined()) engine.add_given(inputs[i], grad_inputs[i]);
  }
  for (const ExtraRoot& root : extra) engine.add_root(root.output, scaled_one(root.output, {}));
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

void check_loss(const Variable& loss) {
  const Shape& shape = loss.shape("backward");
  require<std::invalid_argument>(shape.product() <= 1 || loss.body()->grad.defined(),
                                 "backward: expected a single number, or a variable with a "
                                 "gradient, got one of shape ",
                                 shape);
}

void backward(std::span<const Variable> roots, const BackwardOptions& options,
              PassContext& context) {
  const std::vector<Variable> outputs =
      with_extra(roots, take_extra_roots(context), &ExtraRoot::output);
  const auto pass = make_ref<Propagation>(options.loss_scale);
  AccumulatingEngine engine(outputs, options, context, pass);
  const bool may_free = !options.retain_grad && !options.create_graph;
  for (const Variable& y : outputs) {
    Variable& gy = y.body()->grad;
    if (!gy.defined() && y.size() <= 1) {
      gy = scaled_one(y, options.loss_scale);
      // Whoever gives a gradient may give another one after an update.
      if (may_free) pass->add_loss(*y.node());
    }
    if (gy.defined()) engine.add_root(y, gy);
  }
  engine.run();
  if (options.retain_grad) return;
  for (const Variable& y : outputs) {
    if (y.node()->creator) y.body()->grad = Variable();
  }
}

void accumulate_gradient(const PostponedGradients::Term& term, PassContext& context) {
  const auto pass = make_ref<Propagation>(term.loss_scale);
  AccumulatingEngine({}, {.loss_scale = term.loss_scale}, context, pass).run(term);
}

std::vector<Variable> grad(std::span<const Variable> outputs, std::span<const Variable> inputs,
                           std::span<const Variable> grad_outputs,
                           std::span<const Variable> grad_inputs, const GradOptions& options,
                           PassContext& context) {
  const SettingScope mode(&Settings::backprop, options.create_graph);
  std::vector<Variable> gradients =
      collect_gradients(outputs, inputs, grad_outputs, grad_inputs, options, context);
  if (!options.set_grad) return gradients;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Variable& gx = gradients[i];
    if (gx.defined()) gx = owned_gradient(*inputs[i].node(), gx, context.buffers);
    inputs[i].body()->grad = gx;
  }
  return gradients;
}

std::vector<Variable> recorded_gradients(const Compose& compose, std::span<const Variable> operands,
                                         std::span<const Variable> gys) {
  // New nodes, at which the backward pass stops: one operand may have been computed from another.
  std::vector<Variable> xs;
  for (const Variable& x : operands) {
    xs.push_back(record("Identity", x.array(), {{x, [](const Variable& gy) { return gy; }}}));
  }
  const std::vector<Variable> all = compose(xs);
  std::vector<Variable> ys, grad_outputs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!gys[i].defined()) continue;
    ys.push_back(all[i]);
    grad_outputs.push_back(gys[i]);
  }
  GradOptions options;
  options.create_graph = true;
  return grad(ys, xs, grad_outputs, {}, options);
}

void free_propagated_graphs(std::span<const Variable> leaves) {
  GraphRelease release;
  std::unordered_set<const Propagation*> seen;
  for (const Variable& leaf : leaves) {
    Propagation* const pass = leaf.body()->pass.get();
    if (pass == nullptr || !seen.insert(pass).second) continue;
    for (const auto& loss : std::exchange(pass->losses, {})) {
      // A loss has one owner: the variable that the user holds.
      const VariableNode* const node = loss->node;
      if (node != nullptr && node->use_count() == 1) release.add(*node);
    }
  }
  release.run();
}

}  // namespace renga
