#include "autograd/backward.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "autograd/accumulate.h"
#include "autograd/gradient_place.h"

namespace renga {
namespace {

thread_local BackwardObserver backward_observer = nullptr;
thread_local std::map<int, GradientReadyHook> ready_hooks;
thread_local int open_walks = 0;

// None for a walk inside another one (a function may call backward() on its way back): what it adds
// to a leaf is not all that the leaf gets.
std::vector<GradientReadyHook> current_hooks() {
  std::vector<GradientReadyHook> hooks;
  if (open_walks > 1) return hooks;
  for (const auto& [number, hook] : ready_hooks) hooks.push_back(hook);
  return hooks;
}

// Follows the graph from the outputs, a node's turn coming when all nodes of higher rank are done.
class Walk {
 public:
  explicit Walk(const BackwardOptions& options) : options_(options) { ++open_walks; }
  virtual ~Walk() { --open_walks; }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  void start(const Variable& y, const Variable& gy) {
    Variable& pending = grads_[y.node().get()];
    pending = add_gradients(pending, in_dtype_of(*y.node(), gy));
    keep_.push_back(y.node());
    visit(y.node().get());
  }

  void run() {
    const BackpropMode mode(options_.create_graph);
    const OpenPlaces places(keeps_gradients() && open_walks == 1 && !options_.create_graph);
    while (!queue_.empty()) {
      const Ref<Node> node = queue_.top().node;
      queue_.pop();
      step(*node);
    }
    for (const auto& vertex : keep_) finish(vertex.get());
  }

 protected:
  // Whether the gradient of this input is asked for.
  virtual bool wants(const VariableNode& x) const { return x.requires_grad; }
  // The gradient of `x` is complete; undefined when nothing reached it.
  virtual void finished(VariableNode* x, const Variable& gx) = 0;
  // A node's edges into its inputs are used up.
  virtual void used(const Node&) {}
  // Whether gradients stay with the leaves; otherwise they are handed out.
  virtual bool keeps_gradients() const { return false; }

  Variable take(VariableNode* x) {
    const auto found = grads_.find(x);
    if (found == grads_.end()) return Variable();
    Variable g = std::move(found->second);
    grads_.erase(found);
    return g;
  }

  void visit(VariableNode* x) {
    if (!x->creator) return;
    Node* node = x->creator.get();
    if (seen_.insert(node).second) queue_.push({node->rank, order_++, x->creator});
  }

  void finish(VariableNode* x) {
    if (grads_.contains(x)) finished(x, take(x));
  }

  BackwardOptions options_;

 private:
  struct Entry {
    int rank;
    std::int64_t order;
    Ref<Node> node;
    // The highest rank first, and among equals the one met first.
    bool operator<(const Entry& o) const {
      return rank != o.rank ? rank < o.rank : order > o.order;
    }
  };

  void step(Node& node) {
    gys_.clear();
    bool any = false;
    for (VariableNode* y : node.outputs) {
      Variable gy = y ? take(y) : Variable();
      if (gy.defined()) {
        finished(y, gy);
        any = true;
      }
      gys_.push_back(std::move(gy));
    }
    wanted_.clear();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (wants(*node.inputs[i])) wanted_.push_back(static_cast<int>(i));
    }
    if (any && !wanted_.empty()) propagate(node);
    // A hook may ask whether a gradient is shared: not with these.
    gys_.clear();
    gxs_.clear();
    used(node);
  }

  void propagate(Node& node) {
    // Each distinct input hands its running sum to the node once and takes the new one back.
    gxs_.assign(node.inputs.size(), Variable());
    for (int i : wanted_) gxs_[i] = take(node.inputs[i].get());
    if (backward_observer) backward_observer(node, gys_, false);
    call(node);
    if (backward_observer) backward_observer(node, gys_, true);
    for (int i : wanted_) {
      if (!gxs_[i].defined()) continue;
      VariableNode* x = node.inputs[i].get();
      gxs_[i] = in_dtype_of(*x, gxs_[i]);
      check(node, i, *x);
      Variable& pending = grads_[x];
      pending = add_gradients(pending, gxs_[i]);
      keep_leaf(node.inputs[i]);
      visit(x);
    }
  }

  void call(Node& node) {
    try {
      node.backward(gys_, wanted_, gxs_);
    } catch (const InvalidType& e) {
      fail<InvalidType>(e.what(), where(node));
    } catch (const std::invalid_argument& e) {
      fail<std::invalid_argument>(e.what(), where(node));
    } catch (const std::runtime_error& e) {
      if (typeid(e) != typeid(std::runtime_error)) throw;
      fail<std::runtime_error>(e.what(), where(node));
    }
  }

  static std::string where(const Node& node) {
    std::string text = "\n  in the backward of " + node.label();
    if (node.call_site) text += ", called at " + node.call_site->describe();
    return text;
  }

  // Operations may mix bfloat16 and float32; a gradient has the dtype of what it belongs to.
  static Variable in_dtype_of(const VariableNode& x, const Variable& gx) {
    const bool mixed = (x.dtype == Dtype::bfloat16 && gx.dtype() == Dtype::float32) ||
                       (x.dtype == Dtype::float32 && gx.dtype() == Dtype::bfloat16);
    return mixed ? arithmetic.cast(gx, x.dtype) : gx;
  }

  void check(const Node& node, int i, const VariableNode& x) const {
    const Variable& gx = gxs_[i];
    require<std::invalid_argument>(gx.shape() == x.shape, node.label(),
                                   ": expected a gradient of shape ", x.shape, " for input ", i,
                                   ", got ", gx.shape(), where(node));
    require<std::invalid_argument>(gx.dtype() == x.dtype, node.label(),
                                   ": expected a gradient of dtype ", x.dtype, " for input ", i,
                                   ", got ", gx.dtype(), where(node));
  }

  void keep_leaf(const Ref<VariableNode>& x) {
    if (!x->creator && kept_.insert(x.get()).second) keep_.push_back(x);
  }

  std::unordered_map<VariableNode*, Variable> grads_;
  std::unordered_set<Node*> seen_;
  std::priority_queue<Entry> queue_;
  std::int64_t order_ = 0;
  std::vector<Ref<VariableNode>> keep_;  // leaves met, in order, and the outputs started from
  std::unordered_set<VariableNode*> kept_;
  std::vector<Variable> gys_, gxs_;
  std::vector<int> wanted_;
};

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
    body->grad = add_gradients(body->grad, gx);
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
  return take_companions != nullptr && open_walks == 0 ? take_companions() : Companions();
}

std::vector<Variable> joined(std::span<const Variable> xs, const std::vector<Variable>& more) {
  std::vector<Variable> all(xs.begin(), xs.end());
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Variable scaled_one(const Variable& y, const std::optional<double>& loss_scale) {
  return Variable(arithmetic.full_like(y.array(), loss_scale.value_or(1.0)));
}

}  // namespace

Companions (*take_companions)() = nullptr;

void set_backward_observer(BackwardObserver observer) { backward_observer = observer; }
bool has_backward_observer() { return backward_observer != nullptr; }

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
  const Companions more = companions();
  GradWalk walk(joined(outputs, more.outputs), joined(inputs, more.inputs), options);
  for (const Variable& y : more.outputs) walk.start(y, scaled_one(y, {}));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool given = i < grad_outputs.size() && grad_outputs[i].defined();
    walk.start(outputs[i], given ? grad_outputs[i] : scaled_one(outputs[i], options.loss_scale));
  }
  walk.run();
  std::vector<Variable> found;
  const BackpropMode mode(options.create_graph);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Variable gx = walk.gradient(inputs[i]);
    if (i < grad_inputs.size()) gx = add_gradients(grad_inputs[i], gx);
    if (options.set_grad) inputs[i].body()->grad = gx;
    found.push_back(gx);
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
