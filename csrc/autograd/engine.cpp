#include "autograd/engine.h"

#include <typeinfo>

#include "autograd/accumulate.h"
#include "autograd/gradient_buffer.h"
#include "autograd/leaf_uses.h"
#include "autograd/thread_state.h"

namespace renga {
namespace {

std::string location_of(const Node& node) {
  std::string text = "\n  in the backward of " + node.label();
  if (node.call_site) text += ", called at " + node.call_site->describe();
  return text;
}

// Operations may mix bfloat16 and float32; a gradient has the dtype of its variable.
Variable in_dtype_of(const VariableNode& x, const Variable& gx) {
  const bool mixed = (x.dtype == Dtype::bfloat16 && gx.dtype() == Dtype::float32) ||
                     (x.dtype == Dtype::float32 && gx.dtype() == Dtype::bfloat16);
  return mixed ? arithmetic.cast(gx, x.dtype) : gx;
}

}  // namespace

void set_backward_observer(BackwardObserver observer) { thread_state.backward_observer = observer; }
bool has_backward_observer() { return thread_state.backward_observer != nullptr; }

Engine::Engine(const BackwardOptions& options) : options_(options) {
  ++thread_state.backward_depth;
}
Engine::~Engine() { --thread_state.backward_depth; }

void Engine::add_root(const Variable& y, const Variable& gy) {
  require<std::invalid_argument>(gy.shape() == y.shape(),
                                 "backward: expected the gradient of an output to be of shape ",
                                 y.shape(), ", got ", gy.shape());
  Variable& pending = grads_[y.node().get()];
  pending = add_gradients(pending, in_dtype_of(*y.node(), gy));
  kept_.push_back(y.node());
  enqueue_creator(y.node().get());
}

void Engine::run() {
  const BackpropMode mode(options_.create_graph);
  const bool outermost = thread_state.backward_depth == 1;
  const bool into_leaves = accumulates_into_leaves() && outermost && !options_.create_graph;
  LeafUses uses(kept_);
  const WritesIntoLeaves writes(into_leaves ? &uses : nullptr);
  const bool collects = into_leaves && !has_backward_observer();
  const CollectedSums collected(collects ? &sums_ : nullptr);
  deferred_ = into_leaves && may_defer() ? thread_state.deferred_gradients : nullptr;
  while (!queue_.empty()) {
    const Ref<Node> node = queue_.top().node;
    queue_.pop();
    process(*node);
  }
  for (const auto& x : kept_) complete(x.get());
}

void Engine::run(const DeferredGradients::Term& term) {
  const BackpropMode mode(false);
  const Ref<VariableNode>& leaf = term.node->inputs[term.input];
  LeafUses uses(LeafUses::Counts{{leaf.get(), 1}});
  const WritesIntoLeaves writes(&uses);
  const CollectedSums collected(nullptr);
  gys_.assign(1, term.gy);
  wanted_.assign(1, term.input);
  propagate(*term.node);
  complete(leaf.get());
}

Variable Engine::take_gradient(VariableNode* x) {
  const auto found = grads_.find(x);
  if (found == grads_.end()) return Variable();
  Variable g = std::move(found->second);
  grads_.erase(found);
  return g;
}

void Engine::enqueue_creator(VariableNode* x) {
  if (!x->creator) return;
  Node* node = x->creator.get();
  if (seen_.insert(node).second) queue_.push({node->rank, order_++, x->creator});
}

void Engine::complete(VariableNode* x) {
  const Variable gx = take_complete_gradient(x);
  if (gx.defined()) on_gradient(x, gx);
}

Variable Engine::take_complete_gradient(VariableNode* x) {
  if (!sums_.empty()) {
    const auto sums = sums_.extract(x);
    if (!sums.empty()) add_sums(*x, sums.mapped());
  }
  return take_gradient(x);
}

void Engine::add_sums(VariableNode& x, const GradientSums& sums) {
  Variable& pending = grads_[&x];
  for (const auto& sum : sums.all()) {
    const GradientTarget target(x, pending);
    const Variable terms = sum->compute();
    if (terms.defined()) pending = add_gradients(pending, in_dtype_of(x, terms));
  }
}

void Engine::process(Node& node) {
  gys_.clear();
  bool any = false;
  for (VariableNode* y : node.outputs) {
    Variable gy = y ? take_complete_gradient(y) : Variable();
    if (gy.defined()) {
      on_gradient(y, gy);
      any = true;
    }
    gys_.push_back(std::move(gy));
  }
  wanted_.clear();
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (needs_gradient(*node.inputs[i])) wanted_.push_back(static_cast<int>(i));
  }
  if (any && deferred_ != nullptr && has_separate_gradients(node)) defer_leaves(node);
  if (any && !wanted_.empty()) propagate(node);
  // Released before hooks run, which may test whether a gradient is shared.
  gys_.clear();
  gxs_.clear();
  on_node_done(node);
}

// Its only output has a gradient.
void Engine::defer_leaves(Node& node) {
  std::erase_if(wanted_, [&](int i) {
    const VariableNode& x = *node.inputs[i];
    const bool may_wait = x.variable != nullptr && !x.creator && !deferred_->is_urgent(x) &&
                          thread_state.leaf_uses->of(x) == 1;
    if (may_wait) deferred_->add({Ref<Node>(&node), i, gys_[0], options_.loss_scale});
    return may_wait;
  });
}

void Engine::propagate(Node& node) {
  // The node adds to the running sum of each distinct input.
  gxs_.assign(node.inputs.size(), Variable());
  for (int i : wanted_) gxs_[i] = take_gradient(node.inputs[i].get());
  const auto& observer = thread_state.backward_observer;
  if (observer) observer(node, gys_, false);
  call_backward(node);
  if (observer) observer(node, gys_, true);
  for (int i : wanted_) {
    VariableNode* x = node.inputs[i].get();
    keep_leaf(node.inputs[i]);  // without a gradient, too: terms may have been collected
    if (!gxs_[i].defined()) {
      if (sums_.contains(x)) enqueue_creator(x);
      continue;
    }
    gxs_[i] = in_dtype_of(*x, gxs_[i]);
    check_gradient(node, i, *x);
    Variable& pending = grads_[x];
    pending = add_gradients(pending, gxs_[i]);
    enqueue_creator(x);
  }
}

void Engine::call_backward(Node& node) {
  try {
    node.backward(gys_, wanted_, gxs_);
  } catch (const InvalidType& e) {
    fail<InvalidType>(e.what(), location_of(node));
  } catch (const std::invalid_argument& e) {
    fail<std::invalid_argument>(e.what(), location_of(node));
  } catch (const std::runtime_error& e) {
    if (typeid(e) != typeid(std::runtime_error)) throw;
    fail<std::runtime_error>(e.what(), location_of(node));
  }
}

void Engine::check_gradient(const Node& node, int i, const VariableNode& x) const {
  const Variable& gx = gxs_[i];
  // The label is computed only here: for a Python function it costs as much as a small operation.
  if (gx.shape() == x.shape && gx.dtype() == x.dtype) return;
  require<std::invalid_argument>(gx.shape() == x.shape, node.label(),
                                 ": expected a gradient of shape ", x.shape, " for input ", i,
                                 ", got ", gx.shape(), location_of(node));
  fail<WrongType>(node.label(), ": expected a gradient of dtype ", x.dtype, " for input ", i,
                  ", got ", gx.dtype(), location_of(node));
}

void Engine::keep_leaf(const Ref<VariableNode>& x) {
  if (!x->creator && kept_leaves_.insert(x.get()).second) kept_.push_back(x);
}

}  // namespace renga
