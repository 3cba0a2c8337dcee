#include "autograd/gradient_buffer.h"

#include <utility>

#include "autograd/thread_state.h"
#include "tensor/views.h"

namespace renga {
namespace {

thread_local GradientBuffers buffers;

bool fits(const Array& target, const Shape& shape, Dtype dtype, Device device) {
  return target.shape() == shape && target.dtype() == dtype && target.device() == device &&
         target.is_contiguous();
}

}  // namespace

void set_gradient_buffers(GradientBuffers given) { buffers = std::move(given); }

WritesIntoLeaves::WritesIntoLeaves(LeafUses* uses)
    : previous_(std::exchange(thread_state.leaf_uses, uses)) {}

WritesIntoLeaves::~WritesIntoLeaves() { thread_state.leaf_uses = previous_; }

GradientTarget::GradientTarget(const VariableNode& x, const Variable& sum)
    : previous_(std::exchange(thread_state.gradient_leaf, nullptr)) {
  const bool is_leaf = x.variable != nullptr && !x.creator;
  if (thread_state.leaf_uses != nullptr && is_leaf && !sum.defined()) {
    thread_state.gradient_leaf = &x;
  }
}

GradientTarget::~GradientTarget() { thread_state.gradient_leaf = previous_; }

bool is_gradient_buffer(const VariableNode& x, const Array& gradient) {
  const auto found = buffers.find(&x);
  return found != buffers.end() && found->second.data() == gradient.data();
}

bool is_owned_gradient(const VariableNode& x, const Variable& gradient) {
  const VariableBody& body = *gradient.body();
  const Array& array = gradient.array();
  const bool owned = body.use_count() == 1 && body.is_exclusive() && has_distinct_elements(array);
  return owned || is_gradient_buffer(x, array);
}

Array empty_gradient(const Shape& shape, Dtype dtype, Device device) {
  const VariableNode* const leaf = thread_state.gradient_leaf;
  // The buffer may hold the gradient of an earlier pass.
  if (leaf == nullptr || buffers.empty() || leaf->variable->grad.defined()) {
    return empty(shape, dtype, device);
  }
  const auto found = buffers.find(leaf);
  if (found == buffers.end() || !fits(found->second, shape, dtype, device)) {
    return empty(shape, dtype, device);
  }
  thread_state.gradient_leaf = nullptr;
  return found->second;
}

Array gradient_sum(const Shape& shape, Dtype dtype, Device device) {
  const VariableNode* const leaf = thread_state.gradient_leaf;
  if (leaf == nullptr) return Array();
  const Variable& sum = leaf->variable->grad;
  if (!sum.defined() || sum.node()->creator || !is_owned_gradient(*leaf, sum)) return Array();
  const bool is_alone = thread_state.leaf_uses->of(*leaf) == 1;
  return is_alone && fits(sum.array(), shape, dtype, device) ? sum.array() : Array();
}

}  // namespace renga
