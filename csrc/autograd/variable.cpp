#include "autograd/variable.h"

#include <algorithm>
#include <utility>

#include "autograd/node.h"

namespace renga {

constinit Arithmetic arithmetic;

namespace {

Ref<VariableNode> leaf_node(const Array& array, bool requires_grad) {
  auto node = make_ref<VariableNode>();
  node->requires_grad = requires_grad;
  if (array.defined()) {
    node->shape = array.shape();
    node->dtype = array.dtype();
  }
  return node;
}

}  // namespace

void Propagation::add_loss(VariableNode& loss) {
  if (!loss.weak) loss.weak = make_ref<WeakNode>(&loss);
  losses.push_back(loss.weak);
}

void Propagation::include(const Propagation& earlier) {
  if (std::exchange(included_, &earlier) == &earlier) return;
  for (const auto& loss : earlier.losses) {
    const bool is_new = loss->node != nullptr && std::ranges::find(losses, loss) == losses.end();
    if (is_new) losses.push_back(loss);
  }
}

VariableNode::~VariableNode() {
  if (weak) weak->node = nullptr;
  unchain();
}

int VariableNode::rank() const { return creator ? creator->rank + 1 : 0; }

void VariableNode::unchain() {
  if (creator) release_iteratively(take_creator());
}

Ref<Node> VariableNode::take_creator() {
  creator->forget_output(output_index);
  return std::exchange(creator, nullptr);
}

Variable::Variable(const Array& array, bool requires_grad)
    : Variable(array, leaf_node(array, requires_grad)) {}

Variable::Variable(const Array& array, Ref<VariableNode> node)
    : body_(make_ref<VariableBody>(array, std::move(node))) {}

VariableBody::VariableBody(const Array& array, Ref<VariableNode> node)
    : array_(array), node_(std::move(node)) {
  node_->variable = this;
}

VariableBody::~VariableBody() {
  drop_deferred();
  if (node_->variable == this) node_->variable = nullptr;
}

const Array& VariableBody::writable_array() {
  if (cache) cache->clear();
  expose(array());
  return array_;
}

void VariableBody::set_array(const Array& array) {
  drop_deferred();
  array_ = array;
  host_view.reset();
  cache = nullptr;
  if (!array.defined()) return;
  node_->shape = array.shape();
  node_->dtype = array.dtype();
  if (node_->retained) *node_->retained = array;
}

void VariableBody::set_grad(const Variable& gx) {
  grad = gx;
  grad_state = GradState::whole;
}

void VariableBody::set_node(Ref<VariableNode> node) {
  if (node_->variable == this) node_->variable = nullptr;
  node_ = std::move(node);
  node_->variable = this;
}

void VariableBody::defer(Ref<const Deferred> deferred) {
  deferred->watch();
  deferred_ = std::move(deferred);
}

void VariableBody::compute() const {
  const Ref<const Deferred> deferred = deferred_;
  deferred->run();
  if (deferred_ == deferred) deferred_ = nullptr;
}

void VariableBody::drop_deferred() const {
  if (const Ref<const Deferred> deferred = std::exchange(deferred_, nullptr)) deferred->unwatch();
}

Variable add_gradients(const Variable& a, const Variable& b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  return arithmetic.add(a, b);
}

}  // namespace renga
