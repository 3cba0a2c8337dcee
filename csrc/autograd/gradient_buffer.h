// Preallocated buffers for the gradients of leaves. An operation that writes a gradient there saves
// the copy into the buffer: ranks that share memory read gradients from these buffers.
#pragma once

#include <unordered_map>

#include "autograd/variable.h"

namespace renga {

// For each leaf an array of its shape. Keys are only compared.
using GradientBuffers = std::unordered_map<const VariableNode*, Array>;

// Sets the buffers for the backward() calls of this thread. A leaf without a gradient may get its
// first one there, which overwrites the buffer.
void set_gradient_buffers(GradientBuffers buffers);

// Whether gradients may be written to the buffers, for the scope of a backward pass. Not in a pass
// that is nested or recorded, nor where the gradients are returned to the caller.
class ActiveGradientBuffers {
 public:
  explicit ActiveGradientBuffers(bool active);
  ~ActiveGradientBuffers();
  ActiveGradientBuffers(const ActiveGradientBuffers&) = delete;
  ActiveGradientBuffers& operator=(const ActiveGradientBuffers&) = delete;

 private:
  const GradientBuffers* previous_;
};

// For the scope of the computation of a gradient of `x`, to which `sum` was accumulated before.
class GradientTarget {
 public:
  GradientTarget(const VariableNode& x, const Variable& sum);
  ~GradientTarget();
  GradientTarget(const GradientTarget&) = delete;
  GradientTarget& operator=(const GradientTarget&) = delete;

 private:
  const Array* previous_;
};

// Whether `gradient` is the buffer of `x`.
bool is_gradient_buffer(const VariableNode& x, const Array& gradient);

// An array for the gradient that is being computed: its buffer, at most once, if shape, dtype and
// device match; else new memory.
Array empty_gradient(const Shape& shape, Dtype dtype, Device device);

}  // namespace renga
