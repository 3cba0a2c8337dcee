#include "ops/elementwise/activation.h"

#include <numbers>

#include "autograd/node.h"
#include "lazy/deferred_parts.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/math.h"
#include "ops/reduction/reduction.h"
#include "tensor/views.h"

namespace renga {

constinit FusionRegistry<Variable(const char*, const Variable&, const Activation&)>
    activation_fusions{};

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

namespace {

// The gradient of a piecewise linear function depends only on the sign of x, so it has a VJP for gy
// alone.
Variable piecewise_grad(const char* name, Binary map, double p, const Array& x,
                        const Variable& gy) {
  const Array gx = apply(name, map, x, gy.array(), p);
  auto vjp_gy = [=](const Variable& ggx) { return piecewise_grad(name, map, p, x, ggx); };
  return record(name, gx, {{gy, vjp_gy}});
}

// The slope of ELU is alpha e^x up to 0, as is its curvature, and 1 above it.
Variable elu_grad(const Variable& x, const Variable& gy, double alpha) {
  const Array gx = apply("elu", Binary::elu_grad, x.array(), gy.array(), alpha);
  auto vjp_x = [=](const Variable& ggx) {
    const Variable below =
        Variable(apply("elu", Binary::less_equal, x.array(), zeros({}, x.dtype(), x.device())));
    return multiply(elu_grad(x, multiply(ggx, gy), alpha), below);
  };
  auto vjp_gy = [=](const Variable& ggx) { return elu_grad(x, ggx, alpha); };
  return record("ELUGrad", gx, {{x, vjp_x}, {gy, vjp_gy}});
}

// Activations of bfloat16 stay so beside slopes of float32, by which they are multiplied as floats.
Array prelu_of(const Array& x, const Array& slope) {
  const bool keeps = x.dtype() == Dtype::bfloat16 && slope.dtype() == Dtype::float32 &&
                     x.device() == slope.device() &&
                     broadcast_shapes("prelu", x.shape(), slope.shape()) == x.shape();
  if (!keeps || !x.device().is_host()) {
    const Array y = apply("prelu", Binary::prelu, x, slope);
    return keeps ? cast(y, x.dtype()) : y;
  }
  const Array y = empty_like(x);
  elementwise_kernels.on(x.device())
      .binary(Binary::prelu, 0, x, broadcast_view("prelu", slope, x.shape()), y);
  return y;
}

// 1, or `slope` where x is negative.
Variable prelu_slope(const Variable& x, const Variable& slope) {
  auto vjp_slope = [=](const Variable& gy) {
    const Variable zero(zeros({}, x.dtype(), x.device()));
    const Variable is_negative = subtract_from(1, prelu_slope(Variable(x.array()), zero));
    return sum_to(multiply(gy, is_negative), slope.shape());
  };
  return record("PReLUSlope", apply("prelu", Binary::prelu_slope, x.array(), slope.array()),
                {{slope, vjp_slope}});
}

// A map of what is computed part after part.
struct DeferredMap final : DeferredStep {
  DeferredMap(const Array& y, const Ref<const DeferredParts>& source, Unary map, double p)
      : DeferredStep(y, source, Array()), map(map), p(p) {}
  void transform(const Array& x, const Array& y, std::int64_t, std::int64_t begin,
                 std::int64_t end) const override {
    elementwise_kernels.on(y.device())
        .unary(map, p, 0, elements_of(x, begin, end), elements_of(y, begin, end));
  }
  const Unary map;
  const double p;
};

// map(x), of each part of a pending x, if there is no graph. Else undefined.
Variable map_parts(Unary map, const Variable& x, double p = 0) {
  if (!x.defined() || (backprop_enabled() && x.requires_grad())) return Variable();
  const Ref<const DeferredParts> source = pending_parts(x.body()->deferred());
  if (!source) return Variable();
  Variable y(empty_like(x.metadata()));
  y.body()->defer(make_ref<DeferredMap>(y.metadata(), source, map, p));
  return y;
}

// A smooth activation, whose backward pass reads x alone.
struct SmoothActivation {
  const char *name, *grad_name;
  Unary value;
  Binary grad;  // gy times the slope
  Variable (*curvature)(const Variable& x);
};

Variable smooth_grad(const SmoothActivation& activation, const Variable& x, const Variable& gy) {
  const Array gx = apply(activation.name, activation.grad, x.array(), gy.array());
  auto vjp_x = [=](const Variable& ggx) {
    return multiply(multiply(ggx, gy), activation.curvature(x));
  };
  auto vjp_gy = [=](const Variable& ggx) { return smooth_grad(activation, x, ggx); };
  return record(activation.grad_name, gx, {{x, vjp_x}, {gy, vjp_gy}});
}

Variable smooth(const SmoothActivation& activation, const Variable& x,
                const char* caller = __builtin_FUNCTION()) {
  if (Variable y = map_parts(activation.value, x); y.defined()) return y;
  auto vjp_x = [=](const Variable& gy) { return smooth_grad(activation, x, gy); };
  return record(activation.name, apply(activation.value, x.array(caller)), {{x, vjp_x}});
}

Variable hard_swish_curvature(const Variable& x) {
  return multiply(Variable(apply(Unary::inside, x.array(), -3, 3)), 1.0 / 3);
}

// The normal density times (2 - x²).
Variable gelu_curvature(const Variable& x) {
  const Variable square_x = square(x);
  const Variable density =
      multiply(exp(multiply(square_x, -0.5)), std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return multiply(density, subtract_from(2, square_x));
}

// The second derivative of x s, where s = sigmoid(z), is 2 s' + x s''.
Variable gelu_tanh_curvature(const Variable& x) {
  constexpr double scale = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cubic = 0.044715;
  const Variable square_x = square(x);
  const Variable z = multiply(multiply(x, add(multiply(square_x, cubic), 1)), scale);
  const Variable slope = multiply(add(multiply(square_x, 3 * cubic), 1), scale);
  const Variable s = sigmoid(z);
  const Variable unit = multiply(s, subtract_from(1, s));
  // s'' = s (1 - s) ((1 - 2 s) z'² + z'')
  const Variable bend =
      add(multiply(add(multiply(s, -2), 1), square(slope)), multiply(x, 6 * scale * cubic));
  return multiply(unit, add(multiply(slope, 2), multiply(x, bend)));
}

// s (1 - s) (2 + x (1 - 2 s))
Variable silu_curvature(const Variable& x) {
  const Variable s = sigmoid(x);
  return multiply(multiply(s, subtract_from(1, s)), add(multiply(x, add(multiply(s, -2), 1)), 2));
}

// 2 t' + x t'', where t = tanh(softplus(x)), t' = (1 - t²) s and t'' = t' (1 - s - 2 t s).
Variable mish_curvature(const Variable& x) {
  const Variable t = tanh(softplus(x, 1)), s = sigmoid(x);
  const Variable slope = multiply(subtract_from(1, square(t)), s);
  const Variable bend = subtract_from(1, multiply(s, add(multiply(t, 2), 1)));
  return multiply(slope, add(multiply(x, bend), 2));
}

// p as an element of a dtype.
double rounded(double p, Dtype dtype) {
  return visit_dtype(dtype, [p]<class T>(Type<T>) {
    return static_cast<double>(static_cast<Compute<T>>(T(static_cast<Compute<T>>(p))));
  });
}

}  // namespace

Variable sigmoid(const Variable& x) {
  if (Variable y = map_parts(Unary::sigmoid, x); y.defined()) return y;
  const Array y = apply(Unary::sigmoid, x.array());
  auto vjp_x = [y = Saved(y)](const Variable& gy, GradientSink& to) {
    return sigmoid_grad(y.of(to.node()), gy);
  };
  return record("Sigmoid", y, {{x, vjp_x}});
}

Variable tanh(const Variable& x) {
  if (Variable y = map_parts(Unary::tanh, x); y.defined()) return y;
  const Array y = apply(Unary::tanh, x.array());
  auto vjp_x = [y = Saved(y)](const Variable& gy, GradientSink& to) {
    return tanh_grad(y.of(to.node()), gy);
  };
  return record("Tanh", y, {{x, vjp_x}});
}

Variable activation_grad(const Activation& activation, const Array& y, const Variable& gy) {
  // y has the sign of x, and tells whether x is below a limit, so that x need not be saved.
  const double p = activation.p;
  switch (activation.kind) {
    case Activation::Kind::relu:
      return piecewise_grad("ReLUGrad", Binary::relu_grad, 0, y, gy);
    case Activation::Kind::clipped_relu:
      return piecewise_grad("ClippedReLUGrad", Binary::clipped_relu_grad, p, y, gy);
    default:
      return piecewise_grad("LeakyReLUGrad", Binary::leaky_relu_grad, p, y, gy);
  }
}

Variable relu(const Variable& x) {
  const char* name = "ReLU";
  const Activation relu{Activation::Kind::relu};
  if (Variable y = activation_fusions.apply(name, x, relu); y.defined()) return y;
  if (Variable y = map_parts(Unary::relu, x); y.defined()) return y;
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
  if (Variable y = map_parts(Unary::leaky_relu, x, slope); y.defined()) return y;
  const Array y = apply(Unary::leaky_relu, x.array(), slope);
  // y is above 0 where x is, also where slope * x is 0; with a negative slope y is so elsewhere,
  // too.
  auto vjp_x = [sign = slope >= 0 ? y : x.array(), leaky](const Variable& gy) {
    return activation_grad(leaky, sign, gy);
  };
  return record(name, y, {{x, vjp_x}});
}

Variable prelu(const Variable& x, const Variable& slope) {
  require_floats("prelu", x.array());
  auto vjp_x = [=](const Variable& gy) {
    return sum_to(multiply(gy, prelu_slope(x, slope)), x.shape());
  };
  auto vjp_slope = [=](const Variable& gy) {
    const Variable below = clip(x, -std::numeric_limits<double>::infinity(), 0);
    return sum_to(multiply(gy, below), slope.shape());
  };
  return record("PReLU", prelu_of(x.array(), slope.array()), {{x, vjp_x}, {slope, vjp_slope}});
}

Variable elu(const Variable& x, double alpha) {
  auto vjp_x = [x, alpha](const Variable& gy) { return elu_grad(x, gy, alpha); };
  return record("ELU", apply(Unary::elu, x.array(), alpha, 1), {{x, vjp_x}});
}

Variable selu(const Variable& x, double alpha, double scale) {
  auto vjp_x = [=](const Variable& gy) { return elu_grad(x, multiply(gy, scale), alpha); };
  return record("SELU", apply(Unary::elu, x.array(), alpha * scale, scale), {{x, vjp_x}});
}

Variable softplus(const Variable& x, double beta) {
  auto vjp_x = [x, beta](const Variable& gy) {
    if (!backprop_enabled()) {
      return Variable(apply("softplus", Binary::softplus_grad, x.array(), gy.array(), beta));
    }
    return multiply(gy, sigmoid(multiply(x, beta)));
  };
  return record("Softplus", apply(Unary::softplus, x.array(), beta), {{x, vjp_x}});
}

Variable clipped_relu(const Variable& x, double z) {
  require(is_float(x.dtype()), "clipped_relu: expected a float dtype, got ", x.dtype());
  // y tells where x is inside, if z is compared as it is stored in y.
  const double limit = rounded(z, x.dtype());
  const char* name = "ClippedReLU";
  const Activation clipped{Activation::Kind::clipped_relu, limit};
  // A fused gradient would compare with two numbers, which takes longer than separate passes.
  if (limit > 0 && !(backprop_enabled() && x.requires_grad())) {
    if (Variable y = activation_fusions.apply(name, x, clipped); y.defined()) return y;
  }
  if (Variable y = map_parts(Unary::clipped_relu, x, limit); y.defined()) return y;
  const Array y = apply(Unary::clipped_relu, x.array(), limit);
  auto vjp_x = [=](const Variable& gy) { return activation_grad(clipped, y, gy); };
  return record(name, y, {{x, vjp_x}});
}

Variable hard_sigmoid(const Variable& x) {
  if (Variable y = map_parts(Unary::hard_sigmoid, x); y.defined()) return y;
  auto vjp_x = [x = x.array()](const Variable& gy) {
    return piecewise_grad("HardSigmoidGrad", Binary::hard_sigmoid_grad, 0, x, gy);
  };
  return record("HardSigmoid", apply(Unary::hard_sigmoid, x.array()), {{x, vjp_x}});
}

Variable hard_swish(const Variable& x) {
  return smooth({"HardSwish", "HardSwishGrad", Unary::hard_swish, Binary::hard_swish_grad,
                 hard_swish_curvature},
                x);
}

Variable gelu(const Variable& x, const std::string& approximate) {
  if (approximate == "tanh") {
    return smooth(
        {"GELU", "GELUGrad", Unary::gelu_tanh, Binary::gelu_tanh_grad, gelu_tanh_curvature}, x);
  }
  require<std::invalid_argument>(approximate == "none",
                                 "gelu: expected approximate \"none\" or \"tanh\", got \"",
                                 approximate, "\"");
  return smooth({"GELU", "GELUGrad", Unary::gelu, Binary::gelu_grad, gelu_curvature}, x);
}

Variable silu(const Variable& x) {
  return smooth({"SiLU", "SiLUGrad", Unary::silu, Binary::silu_grad, silu_curvature}, x);
}

Variable mish(const Variable& x) {
  return smooth({"Mish", "MishGrad", Unary::mish, Binary::mish_grad, mish_curvature}, x);
}

}  // namespace renga
