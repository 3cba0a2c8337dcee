// What the engine must know of arithmetic, handed to it by ops/ at start-up: it knows no operation.
#pragma once

#include "autograd/variable.h"

namespace renga {

struct Arithmetic {
  Variable (*add)(const Variable& a, const Variable& b) = nullptr;
  Variable (*cast)(const Variable& x, Dtype dtype) = nullptr;
  // The same numbers in memory of their own.
  Variable (*copy)(const Variable& x) = nullptr;
  // An array of the shape, dtype and device of `x` filled with `value`.
  Array (*full_like)(const Array& x, double value) = nullptr;
};
extern Arithmetic arithmetic;

// a + b, where an undefined Variable is nothing.
Variable add_gradients(const Variable& a, const Variable& b);

}  // namespace renga
