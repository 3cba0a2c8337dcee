#include "autograd/gradient_buffer.h"

#include <utility>

#include "autograd/thread_state.h"
#include "tensor/views.h"

namespace renga {
namespace {

thread_local GradientBuffers buffers;

bool writes_into(const VariableNode& x, const Variable& sum) {
  return thread_state.writes_into_leaves && !sum.defined() && x.variable != nullptr && !x.creator;
}

const Array* buffer_of(const VariableNode& x, const Variable& sum) {
  // The buffer may hold the gradient of an earlier pass.
  if (buffers.empty() || !writes_into(x, sum) || x.variable->grad.defined()) return nullptr;
  const auto found = buffers.find(&x);
  return found == buffers.end() ? nullptr : &found->second;
}

// Not if several operations use the leaf: their gradients are added up before. Observers expect the
// gradient of the operation.
const Array* sum_of(const VariableNode& x, const Variable& sum) {
  if (!writes_into(x, sum) || thread_state.backward_observer != nullptr) return nullptr;
  constexpr int kOneUse = 2;  // references: the variable's and the operation's
  const Variable& grad = x.variable->grad;
  if (!grad.defined() || x.use_count() > kOneUse) return nullptr;
  return !grad.node()->creator && is_owned_gradient(x, grad) ? &grad.array() : nullptr;
}

bool fits(const Array* target, const Shape& shape, Dtype dtype, Device device) {
  return target != nullptr && target->shape() == shape && target->dtype() == dtype &&
         target->device() == device && target->is_contiguous();
}

}  // namespace

void set_gradient_buffers(GradientBuffers given) { buffers = std::move(given); }

WritesIntoLeaves::WritesIntoLeaves(bool active)
    : previous_(std::exchange(thread_state.writes_into_leaves, active)) {}

WritesIntoLeaves::~WritesIntoLeaves() { thread_state.writes_into_leaves = previous_; }

GradientTarget::GradientTarget(const VariableNode& x, const Variable& sum)
    : previous_buffer_(std::exchange(thread_state.gradient_buffer, buffer_of(x, sum))),
      previous_sum_(std::exchange(thread_state.gradient_sum, sum_of(x, sum))) {}

GradientTarget::~GradientTarget() {
  thread_state.gradient_buffer = previous_buffer_;
  thread_state.gradient_sum = previous_sum_;
}

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
  if (!fits(thread_state.gradient_buffer, shape, dtype, device)) return empty(shape, dtype, device);
  return *std::exchange(thread_state.gradient_buffer, nullptr);
}

Array gradient_sum(const Shape& shape, Dtype dtype, Device device) {
  if (!fits(thread_state.gradient_sum, shape, dtype, device)) return Array();
  return *std::exchange(thread_state.gradient_sum, nullptr);
}

}  // namespace renga
