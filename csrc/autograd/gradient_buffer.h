// Where operations write gradients: into the sum of those computed before, which saves an addition
// of arrays, into preallocated buffers of leaves, which ranks that share memory read, or into new
// memory.
#pragma once

#include <unordered_map>

#include "autograd/variable.h"

namespace renga {

// For each leaf an array of its shape. Keys are only compared.
using GradientBuffers = std::unordered_map<const VariableNode*, Array>;

// Sets the buffers for the backward() calls of this thread. A leaf without a gradient may get its
// first one there, which overwrites the buffer.
void set_gradient_buffers(GradientBuffers buffers);

// Whether gradients may be written to sums and buffers, for the scope of a backward pass. Not in a
// pass that is nested or recorded, nor where the gradients are returned to the caller.
class GradientsInPlace {
 public:
  explicit GradientsInPlace(bool active);
  ~GradientsInPlace();
  GradientsInPlace(const GradientsInPlace&) = delete;
  GradientsInPlace& operator=(const GradientsInPlace&) = delete;

 private:
  const bool previous_;
};

// What an operation writes its result to.
struct GradientResult {
  Array array;
  bool adds = false;  // to what is there, else in its place
};

// For the scope of the computation of a gradient of `x`, to which `sum` was accumulated before.
class GradientTarget {
 public:
  GradientTarget(const VariableNode& x, const Variable& sum);
  ~GradientTarget();
  GradientTarget(const GradientTarget&) = delete;
  GradientTarget& operator=(const GradientTarget&) = delete;

  // Whether the gradient has been added to the sum in place.
  bool has_added() const { return has_added_; }
  // See gradient_result().
  GradientResult take(const Shape& shape, Dtype dtype, Device device, bool can_add);

 private:
  const Array* buffer() const;

  const VariableNode& x_;
  const Variable& sum_;
  GradientTarget* const previous_;
  bool has_added_ = false;
};

// Whether nothing but `gx` refers to its memory, which is contiguous.
bool is_exclusively_owned(const Variable& gx);

// Whether `gradient` is the buffer of `x`.
bool is_gradient_buffer(const VariableNode& x, const Array& gradient);

// For the gradient that is being computed: the sum or the buffer, at most once, if shape, dtype and
// device match; else new memory. `can_add`: to the sum, with the bits of a separate addition; for
// the last operation of a VJP only.
GradientResult gradient_result(const Shape& shape, Dtype dtype, Device device, bool can_add);

}  // namespace renga
