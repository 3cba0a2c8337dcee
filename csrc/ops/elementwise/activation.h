// Activation functions.
#pragma once

#include "lazy/fusion.h"
#include "ops/elementwise/elementwise.h"
#include "ops/list.h"

namespace renga {

Variable sigmoid(const Variable& x);
Variable tanh(const Variable& x);
Variable relu(const Variable& x);
Variable leaky_relu(const Variable& x, double slope = 0.2);
Variable elu(const Variable& x, double alpha = 1);
// scale times elu(x, alpha).
Variable selu(const Variable& x, double alpha, double scale);
Variable softplus(const Variable& x, double beta = 1);
Variable clipped_relu(const Variable& x, double z = 20);
Variable hard_sigmoid(const Variable& x);
Variable hard_swish(const Variable& x);
// `slope` broadcasts to x.
Variable prelu(const Variable& x, const Variable& slope);
// `approximate` is "none" or "tanh".
Variable gelu(const Variable& x, const std::string& approximate = "none");
Variable silu(const Variable& x);
Variable mish(const Variable& x);

// gy times the slope of the activation with output y.
Variable sigmoid_grad(const Variable& y, const Variable& gy);
Variable tanh_grad(const Variable& y, const Variable& gy);

// A piecewise linear activation, as kernels that are fused with it take it.
struct Activation {
  enum class Kind : std::uint8_t { none, relu, leaky_relu, clipped_relu };
  Kind kind = Kind::none;
  double p = 1;  // the slope of leaky_relu, above 0, or the upper limit of clipped_relu
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
  visit(Op{"prelu", "(...), (...) -> (...)", "x, or slope * x where x is negative.",
           pointwise(2, "PRelu"), "PReLU"},
        &prelu, Arg{"x"}, Arg{"slope"});
  visit(
      Op{"elu", "(...) -> (...)", "x, or alpha * (exp(x) - 1) where x is negative.", pointwise(3)},
      &elu, Arg{"x"}, Default{"alpha", 1.0});
  visit(Op{"selu", "(...) -> (...)", "scale * elu(x, alpha).", pointwise(4), "SELU"}, &selu,
        Arg{"x"}, Arg{"alpha"}, Arg{"scale"});
  visit(Op{"softplus", "(...) -> (...)", "log(1 + exp(beta * x)) / beta.", pointwise(4)}, &softplus,
        Arg{"x"}, Default{"beta", 1.0});
  visit(Op{"clipped_relu", "(...) -> (...)", "x between 0 and z.", pointwise(2), "ClippedReLU"},
        &clipped_relu, Arg{"x"}, Default{"z", 20.0});
  visit(Op{"hard_sigmoid", "(...) -> (...)", "0.2 x + 0.5 between 0 and 1.",
           pointwise(4, "HardSigmoid")},
        &hard_sigmoid, Arg{"x"});
  visit(Op{"hard_swish", "(...) -> (...)", "x clip(x + 3, 0, 6) / 6 (Howard et al., 2019).",
           pointwise(5, "HardSwish")},
        &hard_swish, Arg{"x"});
  visit(Op{"gelu", "(...) -> (...)",
           "x times the normal distribution function, or its approximation by tanh (Hendrycks and "
           "Gimpel, 2016).",
           pointwise(5), "GELU"},
        &gelu, Arg{"x"}, Default{"approximate", std::string("none")});
  visit(Op{"silu", "(...) -> (...)", "x sigmoid(x).", pointwise(4), "SiLU"}, &silu, Arg{"x"});
  visit(
      Op{"mish", "(...) -> (...)", "x tanh(log(1 + exp(x))) (Misra, 2019).", pointwise(4, "Mish")},
      &mish, Arg{"x"});
}

}  // namespace renga
