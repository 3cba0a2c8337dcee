#include "autograd/engine.h"

#include <typeinfo>

namespace renga {
namespace {

std::string location_of(const Node& node) {
  std::string text = "\n  in the backward of " + node.label();
  if (node.call_site) text += ", called at " + node.call_site->describe();
  return text;
}

void compute_deferred(const Variable& x) {
  if (x.defined()) x.array();
}

}  // namespace

Engine::Engine(const BackwardOptions& options, PassContext& context)
    : options_(options), context_(context) {
  ++context_.running;
}
Engine::~Engine() { --context_.running; }

void Engine::add_root(const Variable& y, const Variable& gy, bool flows_on) {
  require<std::invalid_argument>(gy.shape() == y.shape(),
                                 "backward: expected the gradient of an output to be of shape ",
                                 y.shape(), ", got ", gy.shape());
  sink(nullptr, y.node().get()).add(gy);
  kept_.push_back(y.node());
  if (flows_on) enqueue_creator(y.node().get());
}

void Engine::run() {
  const SettingScope mode(&Settings::backprop, options_.create_graph);
  const bool outermost = context_.running == 1;
  if (accumulates_into_leaves() && outermost && !options_.create_graph) {
    // An observer is to see each operation's gradients.
    CollectedTerms* const collected = context_.observer == nullptr ? &collected_ : nullptr;
    leaves_ = LeafAccess{&context_.buffers, collected, &kept_, {}};
    if (may_postpone()) postponed_ = context_.postponed;
  }
  while (!queue_.empty()) {
    const Ref<Node> node = queue_.top().node;
    queue_.pop();
    process(*node);
  }
  for (const auto& x : kept_) complete(x.get());
}

void Engine::run(const PostponedGradients::Term& term) {
  const SettingScope mode(&Settings::backprop, false);
  const Ref<VariableNode>& leaf = term.node->inputs[term.input];
  leaves_ = LeafAccess{&context_.buffers, nullptr, nullptr, LeafUses{{leaf.get(), 1}}};
  gys_.assign(1, term.gy);
  wanted_.assign(1, term.input);
  propagate(*term.node);
  complete(leaf.get());
}

GradientSink Engine::sink(Node* node, VariableNode* x) {
  return {leaves_ ? &*leaves_ : nullptr, node, x, &grads_[x]};
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
  if (!collected_.empty()) {
    if (const auto all = collected_.extract(x); !all.empty()) {
      for (const auto& terms : all.mapped()) {
        GradientSink to = sink(nullptr, x);
        to.add(terms->sum(to));
      }
    }
  }
  return take_gradient(x);
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
  if (any && postponed_ != nullptr && node.has_separate_gradients()) postpone_leaves(node);
  if (any && !wanted_.empty()) propagate(node);
  // Released before hooks run, which may test whether a gradient is shared.
  gys_.clear();
  on_node_done(node);
}

// Its only output has a gradient.
void Engine::postpone_leaves(Node& node) {
  std::erase_if(wanted_, [&](int i) {
    const VariableNode& x = *node.inputs[i];
    const bool may_wait = x.variable != nullptr && !x.creator && !postponed_->is_urgent(x) &&
                          leaves_->uses_of(x) == 1;
    if (may_wait) postponed_->add({Ref<Node>(&node), i, gys_[0], options_.loss_scale});
    return may_wait;
  });
}

void Engine::propagate(Node& node) {
  sinks_.clear();
  for (int i : wanted_) sinks_.push_back(sink(&node, node.inputs[i].get()));
  const BackwardObserver observer = context_.observer;
  if (observer != nullptr) observer(node, gys_, false);
  call_backward(node);
  if (observer != nullptr) {
    for (int i : wanted_) compute_deferred(grads_[node.inputs[i].get()]);
    observer(node, gys_, true);
  }
  for (int i : wanted_) {
    const Ref<VariableNode>& x = node.inputs[i];
    keep_leaf(x);  // without a gradient, too: terms may have been collected
    const Variable& gx = grads_[x.get()];
    if (gx.defined()) check_gradient(node, i, gx);
    if (gx.defined() || collected_.contains(x.get())) enqueue_creator(x.get());
  }
}

void Engine::call_backward(Node& node) {
  try {
    node.backward(gys_, wanted_, sinks_);
  } catch (const InvalidType& e) {
    fail<InvalidType>(e.what(), location_of(node));
  } catch (const std::invalid_argument& e) {
    fail<std::invalid_argument>(e.what(), location_of(node));
  } catch (const std::runtime_error& e) {
    if (typeid(e) != typeid(std::runtime_error)) throw;
    fail<std::runtime_error>(e.what(), location_of(node));
  }
}

void Engine::check_gradient(const Node& node, int i, const Variable& gx) const {
  const VariableNode& x = *node.inputs[i];
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
