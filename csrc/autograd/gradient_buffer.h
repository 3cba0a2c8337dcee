// Where the gradients of leaves are written. Preallocated buffers: an operation that writes a
// gradient there saves the copy into the buffer, as ranks that share memory read gradients from
// these buffers. Or the sum of earlier passes: an operation that adds to it saves a pass over it.
#pragma once

#include <unordered_map>

#include "autograd/leaf_uses.h"
#include "autograd/variable.h"

namespace renga {

// For each leaf an array of its shape. Keys are only compared.
using GradientBuffers = std::unordered_map<const VariableNode*, Array>;

// Sets the buffers for the backward() calls of this thread. A leaf without a gradient may get its
// first one there, which overwrites the buffer.
void set_gradient_buffers(GradientBuffers buffers);

// Whether operations may write gradients of leaves where they are kept, for the scope of a backward
// pass. Not in a pass that is nested or recorded, nor where the gradients are returned to the
// caller.
class WritesIntoLeaves {
 public:
  // `uses`: of the graph; nullptr where operations may not.
  explicit WritesIntoLeaves(LeafUses* uses);
  ~WritesIntoLeaves();
  WritesIntoLeaves(const WritesIntoLeaves&) = delete;
  WritesIntoLeaves& operator=(const WritesIntoLeaves&) = delete;

 private:
  LeafUses* const previous_;
};

// For the scope of the computation of a gradient of `x`, to which `sum` was accumulated before in
// this pass.
class GradientTarget {
 public:
  GradientTarget(const VariableNode& x, const Variable& sum);
  ~GradientTarget();
  GradientTarget(const GradientTarget&) = delete;
  GradientTarget& operator=(const GradientTarget&) = delete;

 private:
  const VariableNode* const previous_;
};

// Whether `gradient` is the buffer of `x`.
bool is_gradient_buffer(const VariableNode& x, const Array& gradient);
// Whether only the leaf `x` has the memory of `gradient`, which may be its own, and each element
// its own place there: then it may be written.
bool is_owned_gradient(const VariableNode& x, const Variable& gradient);

// An array for the gradient that is being computed: its buffer, at most once, if shape, dtype and
// device match; else new memory.
Array empty_gradient(const Shape& shape, Dtype dtype, Device device);
// The sum of earlier passes: an operation that adds the gradient that is being computed to it
// returns an undefined Variable. Undefined where there is none that fits, or where the graph uses
// the leaf several times, as those gradients are added up before.
Array gradient_sum(const Shape& shape, Dtype dtype, Device device);

}  // namespace renga
