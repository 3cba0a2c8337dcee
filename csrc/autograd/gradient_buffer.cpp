#include "autograd/gradient_buffer.h"

#include <utility>

#include "autograd/thread_state.h"

namespace renga {
namespace {

thread_local GradientBuffers buffers;

bool fits(const Array& to, const Shape& shape, Dtype dtype, Device device) {
  return to.shape() == shape && to.dtype() == dtype && to.device() == device && to.is_contiguous();
}

}  // namespace

void set_gradient_buffers(GradientBuffers given) { buffers = std::move(given); }

GradientsInPlace::GradientsInPlace(bool active)
    : previous_(std::exchange(thread_state.gradients_in_place, active)) {}

GradientsInPlace::~GradientsInPlace() { thread_state.gradients_in_place = previous_; }

GradientTarget::GradientTarget(const VariableNode& x, const Variable& sum)
    : x_(x),
      sum_(sum),
      previous_(std::exchange(thread_state.gradient_target,
                              thread_state.gradients_in_place ? this : nullptr)) {}

GradientTarget::~GradientTarget() { thread_state.gradient_target = previous_; }

GradientResult GradientTarget::take(const Shape& shape, Dtype dtype, Device device, bool can_add) {
  if (sum_.defined()) {
    if (can_add && fits(sum_.metadata(), shape, dtype, device) && is_exclusively_owned(sum_)) {
      has_added_ = true;
      return {sum_.array(), true};
    }
  } else if (const Array* to = buffer(); to != nullptr && fits(*to, shape, dtype, device)) {
    return {*to};
  }
  return {empty(shape, dtype, device)};
}

const Array* GradientTarget::buffer() const {
  // The buffer may hold the gradient of an earlier pass.
  if (x_.variable == nullptr || x_.variable->grad.defined()) return nullptr;
  const auto found = buffers.find(&x_);
  return found == buffers.end() ? nullptr : &found->second;
}

bool is_exclusively_owned(const Variable& gx) {
  const VariableBody& body = *gx.body();
  return body.use_count() == 1 && body.is_exclusive() && gx.array().is_contiguous();
}

bool is_gradient_buffer(const VariableNode& x, const Array& gradient) {
  const auto found = buffers.find(&x);
  return found != buffers.end() && found->second.data() == gradient.data();
}

GradientResult gradient_result(const Shape& shape, Dtype dtype, Device device, bool can_add) {
  GradientTarget* const target = std::exchange(thread_state.gradient_target, nullptr);
  return target != nullptr ? target->take(shape, dtype, device, can_add)
                           : GradientResult{empty(shape, dtype, device)};
}

}  // namespace renga
