// Where gradients of leaves are to lie, known to the operations that compute them: what is written
// there at once need not be copied there, which ranks that share memory do with every gradient.
#pragma once

#include <unordered_map>

#include "autograd/variable.h"

namespace renga {

// For each leaf an array of its shape. Keys are vertices, compared only.
using GradientPlaces = std::unordered_map<const VariableNode*, Array>;

// Places for the backward() calls of this thread. A leaf without a gradient may get its first one
// there; its place's contents are lost then.
void set_gradient_places(GradientPlaces places);

// While a way back runs: whether its leaves' gradients may lie in their places. Those of a way back
// inside another one, or of one that is recorded, or whose gradients are handed out, may not.
class OpenPlaces {
 public:
  explicit OpenPlaces(bool open);
  ~OpenPlaces();
  OpenPlaces(const OpenPlaces&) = delete;
  OpenPlaces& operator=(const OpenPlaces&) = delete;

 private:
  const GradientPlaces* before_;
};

// While the gradient of `x` is computed, to which `sum` has come so far.
class GradientOf {
 public:
  GradientOf(const VariableNode& x, const Variable& sum);
  ~GradientOf();
  GradientOf(const GradientOf&) = delete;
  GradientOf& operator=(const GradientOf&) = delete;

 private:
  const Array* before_;
};

// Whether `gradient` lies in the place of `x`.
bool lies_in_place(const VariableNode& x, const Array& gradient);

// An array for the gradient that is being computed: its place, once, if that is like this.
Array gradient_array(const Shape& shape, Dtype dtype, Device device);

}  // namespace renga
