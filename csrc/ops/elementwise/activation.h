// Activation functions.
#pragma once

#include "lazy/fusion.h"
#include "ops/elementwise/elementwise.h"
#include "ops/list.h"

namespace renga {

Variable sigmoid(const Variable& x);
Variable tanh(const Variable& x);
Variable relu(const Variable& x);
Variable leaky_relu(const Variable& x, double slope);
Variable elu(const Variable& x, double alpha);
Variable softplus(const Variable& x, double beta);

// A piecewise linear activation, as kernels that are fused with it take it.
struct Activation {
  enum class Kind : std::uint8_t { none, relu, leaky_relu };
  Kind kind = Kind::none;
  double slope = 1;  // of leaky_relu, above 0
};
// gy times the slope of the activation with output y.
Variable activation_grad(const Activation& activation, const Array& y, const Variable& gy);

// The activation of a deferred x, recorded as operation `name`.
extern FusionRegistry<Variable(const char* name, const Variable& x, const Activation&)>
    activation_fusions;

template <class Visit>
void list_activation_ops(Visit&& visit) {
  visit(Op{"sigmoid", "(...) -> (...)", "1 / (1 + exp(-x)).", pointwise(4, "Sigmoid")}, &sigmoid,
        Arg{"x"});
  visit(Op{"tanh", "(...) -> (...)", "Hyperbolic tangent.", pointwise(1, "Tanh")}, &tanh, Arg{"x"});
  visit(Op{"relu", "(...) -> (...)", "max(x, 0).", pointwise(1, "Relu")}, &relu, Arg{"x"});
  visit(Op{"leaky_relu", "(...) -> (...)", "x, or slope * x where x is negative.", pointwise(2)},
        &leaky_relu, Arg{"x"}, Default{"slope", 0.2});
  visit(
      Op{"elu", "(...) -> (...)", "x, or alpha * (exp(x) - 1) where x is negative.", pointwise(3)},
      &elu, Arg{"x"}, Default{"alpha", 1.0});
  visit(Op{"softplus", "(...) -> (...)", "log(1 + exp(beta * x)) / beta.", pointwise(4)}, &softplus,
        Arg{"x"}, Default{"beta", 1.0});
}

}  // namespace renga
