#include "autograd/walk.h"

#include <typeinfo>

#include "autograd/accumulate.h"
#include "autograd/gradient_place.h"

namespace renga {
namespace {

thread_local BackwardObserver backward_observer = nullptr;
thread_local int open = 0;

std::string where(const Node& node) {
  std::string text = "\n  in the backward of " + node.label();
  if (node.call_site) text += ", called at " + node.call_site->describe();
  return text;
}

// Operations may mix bfloat16 and float32; a gradient has the dtype of what it belongs to.
Variable in_dtype_of(const VariableNode& x, const Variable& gx) {
  const bool mixed = (x.dtype == Dtype::bfloat16 && gx.dtype() == Dtype::float32) ||
                     (x.dtype == Dtype::float32 && gx.dtype() == Dtype::bfloat16);
  return mixed ? arithmetic.cast(gx, x.dtype) : gx;
}

}  // namespace

void set_backward_observer(BackwardObserver observer) { backward_observer = observer; }
bool has_backward_observer() { return backward_observer != nullptr; }

int open_walks() { return open; }

Walk::Walk(const BackwardOptions& options) : options_(options) { ++open; }
Walk::~Walk() { --open; }

void Walk::start(const Variable& y, const Variable& gy) {
  require<std::invalid_argument>(gy.shape() == y.shape(),
                                 "backward: expected the gradient of an output to be of shape ",
                                 y.shape(), ", got ", gy.shape());
  Variable& pending = grads_[y.node().get()];
  pending = add_gradients(pending, in_dtype_of(*y.node(), gy));
  keep_.push_back(y.node());
  visit(y.node().get());
}

void Walk::run() {
  const BackpropMode mode(options_.create_graph);
  const OpenPlaces places(keeps_gradients() && open == 1 && !options_.create_graph);
  while (!queue_.empty()) {
    const Ref<Node> node = queue_.top().node;
    queue_.pop();
    step(*node);
  }
  for (const auto& vertex : keep_) finish(vertex.get());
}

Variable Walk::take(VariableNode* x) {
  const auto found = grads_.find(x);
  if (found == grads_.end()) return Variable();
  Variable g = std::move(found->second);
  grads_.erase(found);
  return g;
}

void Walk::visit(VariableNode* x) {
  if (!x->creator) return;
  Node* node = x->creator.get();
  if (seen_.insert(node).second) queue_.push({node->rank, order_++, x->creator});
}

void Walk::finish(VariableNode* x) {
  if (grads_.contains(x)) finished(x, take(x));
}

void Walk::step(Node& node) {
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

void Walk::propagate(Node& node) {
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

void Walk::call(Node& node) {
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

void Walk::check(const Node& node, int i, const VariableNode& x) const {
  const Variable& gx = gxs_[i];
  // Names are asked for only then: of a function in Python that takes as long as a small operation.
  if (gx.shape() == x.shape && gx.dtype() == x.dtype) return;
  require<std::invalid_argument>(gx.shape() == x.shape, node.label(),
                                 ": expected a gradient of shape ", x.shape, " for input ", i,
                                 ", got ", gx.shape(), where(node));
  fail<std::invalid_argument>(node.label(), ": expected a gradient of dtype ", x.dtype,
                              " for input ", i, ", got ", gx.dtype(), where(node));
}

void Walk::keep_leaf(const Ref<VariableNode>& x) {
  if (!x->creator && kept_.insert(x.get()).second) keep_.push_back(x);
}

}  // namespace renga
