// The few operations that the engine needs. csrc/ops registers them at start-up, so that autograd
// does not depend on it.
#pragma once

#include "autograd/variable.h"

namespace renga {

struct Arithmetic {
  Variable (*add)(const Variable& a, const Variable& b) = nullptr;
  // sum += x, without a graph.
  void (*add_to)(const Array& sum, const Array& x) = nullptr;
  Variable (*cast)(const Variable& x, Dtype dtype) = nullptr;
  // A copy in new memory.
  Variable (*copy)(const Variable& x) = nullptr;
  // An array of the shape, dtype and device of `x` filled with `value`.
  Array (*full_like)(const Array& x, double value) = nullptr;
};
extern Arithmetic arithmetic;

// a + b, where an undefined Variable counts as zero.
Variable add_gradients(const Variable& a, const Variable& b);

}  // namespace renga
