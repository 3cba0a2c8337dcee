#include "ops/elementwise/activation.h"

#include "autograd/node.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/math.h"

namespace renga {

constinit FusionRegistry<Variable(const char*, const Variable&, const Activation&)>
    activation_fusions{};

namespace {

Variable sigmoid_grad(const Variable& y, const Variable& gy) {
  const Array gx = apply("sigmoid", Binary::sigmoid_grad, y.array(), gy.array());
  auto vjp_y = [y, gy](const Variable& ggx) {
    return multiply(multiply(ggx, gy), add(multiply(y, -2), 1));
  };
  auto vjp_gy = [y](const Variable& ggx) { return sigmoid_grad(y, ggx); };
  return record("SigmoidGrad", gx, {{y, vjp_y}, {gy, vjp_gy}});
}

Variable tanh_grad(const Variable& y, const Variable& gy) {
  const Array gx = apply("tanh", Binary::tanh_grad, y.array(), gy.array());
  auto vjp_y = [y, gy](const Variable& ggx) {
    return multiply(multiply(ggx, gy), multiply(y, -2));
  };
  auto vjp_gy = [y](const Variable& ggx) { return tanh_grad(y, ggx); };
  return record("TanhGrad", gx, {{y, vjp_y}, {gy, vjp_gy}});
}

// Of a piecewise linear function: the gradient depends only on the sign of x, so it has a VJP for
// gy alone.
Variable piecewise_grad(const char* name, Binary map, double p, const Array& x,
                        const Variable& gy) {
  const Array gx = apply(name, map, x, gy.array(), p);
  auto vjp_gy = [=](const Variable& ggx) { return piecewise_grad(name, map, p, x, ggx); };
  return record(name, gx, {{gy, vjp_gy}});
}

}  // namespace

Variable sigmoid(const Variable& x) {
  const Array y = apply(Unary::sigmoid, x.array());
  auto vjp_x = [y = Saved(y)](const Variable& gy) { return sigmoid_grad(y.get(), gy); };
  return record("Sigmoid", y, {{x, vjp_x}});
}

Variable tanh(const Variable& x) {
  const Array y = apply(Unary::tanh, x.array());
  auto vjp_x = [y = Saved(y)](const Variable& gy) { return tanh_grad(y.get(), gy); };
  return record("Tanh", y, {{x, vjp_x}});
}

Variable activation_grad(const Activation& activation, const Array& y, const Variable& gy) {
  // y has the sign of x, so that x need not be saved.
  if (activation.kind == Activation::Kind::relu) {
    return piecewise_grad("ReLUGrad", Binary::relu_grad, 0, y, gy);
  }
  return piecewise_grad("LeakyReLUGrad", Binary::leaky_relu_grad, activation.slope, y, gy);
}

Variable relu(const Variable& x) {
  const char* name = "ReLU";
  const Activation relu{Activation::Kind::relu};
  if (Variable y = activation_fusions.apply(name, x, relu); y.defined()) return y;
  const Array y = apply(Unary::relu, x.array());
  auto vjp_x = [=](const Variable& gy) { return activation_grad(relu, y, gy); };
  return record(name, y, {{x, vjp_x}});
}

Variable leaky_relu(const Variable& x, double slope) {
  const char* name = "LeakyReLU";
  const Activation leaky{Activation::Kind::leaky_relu, slope};
  if (slope > 0) {
    if (Variable y = activation_fusions.apply(name, x, leaky); y.defined()) return y;
  }
  const Array y = apply(Unary::leaky_relu, x.array(), slope);
  // With a negative slope, y loses the sign of x.
  auto vjp_x = [sign = slope >= 0 ? y : x.array(), leaky](const Variable& gy) {
    return activation_grad(leaky, sign, gy);
  };
  return record(name, y, {{x, vjp_x}});
}

Variable elu(const Variable& x, double alpha) {
  auto vjp_x = [x, alpha](const Variable& gy) {
    // alpha e^min(x, 0) is the slope below 0; above it the slope is 1.
    const Variable below =
        Variable(apply("elu", Binary::less_equal, x.array(), zeros({}, x.dtype(), x.device())));
    const Variable slope = multiply(exp(multiply(x, below)), alpha);
    return multiply(gy, add(multiply(add(slope, -1), below), 1));
  };
  return record("ELU", apply(Unary::elu, x.array(), alpha), {{x, vjp_x}});
}

Variable softplus(const Variable& x, double beta) {
  auto vjp_x = [x, beta](const Variable& gy) { return multiply(gy, sigmoid(multiply(x, beta))); };
  return record("Softplus", apply(Unary::softplus, x.array(), beta), {{x, vjp_x}});
}

}  // namespace renga
