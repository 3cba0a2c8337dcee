#include "autograd/gradient_sink.h"

#include <unordered_set>

#include "autograd/node.h"
#include "tensor/views.h"

namespace renga {
namespace {

bool fits(const Array& target, const Shape& shape, Dtype dtype, Device device) {
  return target.shape() == shape && target.dtype() == dtype && target.device() == device &&
         target.is_contiguous();
}

// Operations may mix bfloat16 and float32; a gradient has the dtype of its variable.
Variable in_dtype_of(const VariableNode& x, const Variable& gx) {
  const bool mixed = (x.dtype == Dtype::bfloat16 && gx.dtype() == Dtype::float32) ||
                     (x.dtype == Dtype::float32 && gx.dtype() == Dtype::bfloat16);
  return mixed ? arithmetic.cast(gx, x.dtype) : gx;
}

// Calls visit(x) for each input x, a leaf that requires a gradient, of each node before the roots.
template <class Visit>
void visit_leaf_uses(const std::vector<Ref<VariableNode>>& roots, const Visit& visit) {
  std::vector<Node*> stack;
  std::unordered_set<Node*> seen;
  const auto push_creator = [&](const VariableNode& x) {
    if (x.creator && seen.insert(x.creator.get()).second) stack.push_back(x.creator.get());
  };
  for (const auto& root : roots) push_creator(*root);
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (const auto& x : node->inputs) {
      if (!x->requires_grad) continue;
      x->creator ? push_creator(*x) : visit(x);
    }
  }
}

}  // namespace

Array GradientBuffers::of(const VariableNode& x) const {
  if (buffers_.empty()) return Array();
  const auto found = buffers_.find(&x);
  return found == buffers_.end() ? Array() : found->second;
}

bool GradientBuffers::is_owned(const VariableNode& x, const Variable& gradient) const {
  const VariableBody& body = *gradient.body();
  const Array& array = gradient.array();
  if (body.use_count() == 1 && body.is_exclusive() && has_distinct_elements(array)) return true;
  const Array buffer = of(x);
  return buffer.defined() && buffer.data() == array.data();
}

LeafUses count_leaf_uses(const std::vector<Ref<VariableNode>>& roots) {
  LeafUses uses;
  visit_leaf_uses(roots, [&](const Ref<VariableNode>& x) { ++uses[x.get()]; });
  return uses;
}

std::vector<Ref<VariableNode>> leaves_before(const std::vector<Ref<VariableNode>>& roots) {
  std::vector<Ref<VariableNode>> leaves;
  std::unordered_set<const VariableNode*> seen;
  const auto add = [&](const Ref<VariableNode>& x) {
    if (seen.insert(x.get()).second) leaves.push_back(x);
  };
  for (const auto& root : roots) {
    if (!root->creator && root->requires_grad) add(root);
  }
  visit_leaf_uses(roots, add);
  return leaves;
}

int LeafAccess::uses_of(const VariableNode& x) {
  if (!uses) uses = count_leaf_uses(*roots);
  const auto found = uses->find(&x);
  return found == uses->end() ? 0 : found->second;
}

bool GradientSink::is_first_of_leaf() const {
  return leaves_ != nullptr && x_->variable != nullptr && !x_->creator && !sum_->defined();
}

Array GradientSink::empty(const Shape& shape, Dtype dtype, Device device) {
  // The buffer may hold the gradient of an earlier pass.
  if (is_first_of_leaf() && !has_given_buffer_ && !x_->variable->grad.defined()) {
    const Array buffer = leaves_->buffers->of(*x_);
    if (buffer.defined() && fits(buffer, shape, dtype, device)) {
      has_given_buffer_ = true;
      return buffer;
    }
  }
  return renga::empty(shape, dtype, device);
}

Array GradientSink::earlier_sum(const Shape& shape, Dtype dtype, Device device) const {
  if (!is_first_of_leaf()) return Array();
  const Variable& sum = x_->variable->grad;
  if (!sum.defined() || sum.node()->creator || !leaves_->buffers->is_owned(*x_, sum)) {
    return Array();
  }
  const bool is_alone = leaves_->uses_of(*x_) == 1;
  return is_alone && fits(sum.array(), shape, dtype, device) ? sum.array() : Array();
}

void GradientSink::add(const Variable& gx) {
  if (gx.defined()) *sum_ = in_dtype_of(*x_, add_gradients(*sum_, gx));
}

std::vector<std::unique_ptr<GradientTerms>>* GradientSink::collected_terms() {
  if (leaves_ == nullptr || leaves_->collected == nullptr) return nullptr;
  const auto found = leaves_->collected->find(x_);
  if (found != leaves_->collected->end()) return &found->second;
  // One reference is the variable's, the others are of operations.
  return x_->use_count() > 2 ? &(*leaves_->collected)[x_] : nullptr;
}

}  // namespace renga
