#include "autograd/gradient_buffer.h"

#include <utility>

#include "autograd/thread_state.h"

namespace renga {
namespace {

thread_local GradientBuffers buffers;

const Array* target_of(const VariableNode& x, const Variable& sum) {
  if (thread_state.active_buffers == nullptr || sum.defined()) return nullptr;
  // The buffer may hold the gradient of an earlier pass.
  if (x.variable == nullptr || x.variable->grad.defined()) return nullptr;
  const auto found = thread_state.active_buffers->find(&x);
  return found == thread_state.active_buffers->end() ? nullptr : &found->second;
}

}  // namespace

void set_gradient_buffers(GradientBuffers given) { buffers = std::move(given); }

ActiveGradientBuffers::ActiveGradientBuffers(bool active)
    : previous_(std::exchange(thread_state.active_buffers,
                              active && !buffers.empty() ? &buffers : nullptr)) {}

ActiveGradientBuffers::~ActiveGradientBuffers() { thread_state.active_buffers = previous_; }

GradientTarget::GradientTarget(const VariableNode& x, const Variable& sum)
    : previous_(std::exchange(thread_state.gradient_target, target_of(x, sum))) {}

GradientTarget::~GradientTarget() { thread_state.gradient_target = previous_; }

bool is_gradient_buffer(const VariableNode& x, const Array& gradient) {
  const auto found = buffers.find(&x);
  return found != buffers.end() && found->second.data() == gradient.data();
}

Array empty_gradient(const Shape& shape, Dtype dtype, Device device) {
  const Array* buffer = thread_state.gradient_target;
  if (buffer == nullptr || buffer->shape() != shape || buffer->dtype() != dtype ||
      buffer->device() != device || !buffer->is_contiguous()) {
    return empty(shape, dtype, device);
  }
  thread_state.gradient_target = nullptr;
  return *buffer;
}

}  // namespace renga
