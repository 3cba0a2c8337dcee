#include "ops/loss/loss.h"

#include <algorithm>
#include <limits>

#include "autograd/node.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/math.h"
#include "ops/indexing/index_check.h"
#include "ops/reduction/reduction.h"
#include "ops/reduction/softmax.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<LossKernels> loss_kernels{"loss"};

namespace {

Dtype loss_dtype(Dtype scores) { return scores == Dtype::bfloat16 ? Dtype::float32 : scores; }

// The checked labels and weights of softmax_nll.
struct Target {
  Array t, weight;
  std::int64_t ignore;
};

Target make_target(const Variable& x, const Array& t, const std::optional<Array>& weight,
                   std::int64_t ignore) {
  const char* op = "softmax_cross_entropy";
  Shape samples = x.shape(op);
  require(is_float(x.dtype()), op, ": expected x of a float dtype, got ", x.dtype());
  require(x.ndim() >= 2, op, ": expected x of shape (N, C, ...), got ", x.shape());
  samples.erase(1);
  require(t.shape() == samples, op, ": expected t of shape ", samples, " for x of shape ",
          x.shape(), ", got ", t.shape());
  const Dtype dtype = loss_dtype(x.dtype());
  if (weight) {
    require<std::invalid_argument>(weight->ndim() == 1, op,
                                   ": expected class_weight with 1 axis, got ", weight->shape());
    require(weight->shape(0) == x.shape(1) && weight->dtype() == dtype, op,
            ": expected class_weight of shape (", x.shape(1), ",) and dtype ", dtype, ", got ",
            weight->shape(), " and ", weight->dtype());
  }
  return {checked_indices(op, "t", t, x.shape(1), x.device(), ignore),
          weight ? contiguous(to_device(*weight, x.device())) : Array(), ignore};
}

// Two numbers for each sample.
Array empty_normalizers(const Variable& x, const Target& target) {
  Shape shape{2};
  for (int axis = 0; axis < target.t.ndim(); ++axis) shape.push_back(target.t.shape(axis));
  return empty(shape, wide_dtype(x.dtype()), x.device());
}

// The gradient with respect to x, written with operations for second derivatives.
Variable composed_grad(const Variable& x, const Variable& log_p, const Target& target,
                       const Variable& gy) {
  // With gy = 1 and normalizers 0 the kernel returns -weight[t] onehot(t) for x = -inf, and that
  // plus weight[t] for x = 0.
  const Array minus =
      full(x.shape(), -std::numeric_limits<double>::infinity(), x.dtype(), x.device());
  const Array ones = full(gy.shape(), 1, gy.dtype(), gy.device());
  const Array onehot = empty_like(x.array()), weights = empty_like(x.array());
  const Array none = empty_normalizers(x, target);
  fill(none, 0);
  const LossKernels& kernels = loss_kernels.on(x.device());
  kernels.nll_grad(minus, none, target.t, target.weight, target.ignore, ones, onehot);
  kernels.nll_grad(zeros(x.shape(), x.dtype(), x.device()), none, target.t, target.weight,
                   target.ignore, ones, weights);
  const Variable scale = subtract(Variable(weights), Variable(onehot));
  const Variable slope = add(multiply(exp(log_p), scale), Variable(onehot));
  return multiply(slope, expand_dims(gy, 1));
}

Variable nll(const Variable& x, const Target& target) {
  const Array normalizers = empty_normalizers(x, target);
  const Array loss = empty(target.t.shape(), loss_dtype(x.dtype()), x.device());
  loss_kernels.on(x.device())
      .nll(x.array(), target.t, target.weight, target.ignore, normalizers, loss);
  auto vjp_x = [=](const Variable& gy) {
    if (backprop_enabled()) {
      const Variable scores = cast(x, loss_dtype(x.dtype()));
      return cast(composed_grad(scores, log_softmax(scores, 1), target, gy), x.dtype());
    }
    const Array gx = empty_like(x.array());
    loss_kernels.on(gx.device())
        .nll_grad(x.array(), normalizers, target.t, target.weight, target.ignore, gy.array(), gx);
    return Variable(gx);
  };
  return record("SoftmaxCrossEntropy", loss, {{x, vjp_x}});
}

// Labels are of the dtype of x and on its device.
Variable sigmoid_nll_slope(const Variable& x, const Array& t) {
  auto vjp_x = [=](const Variable& gy) {
    const Array zero = zeros({}, t.dtype(), t.device());
    const Variable is_used(apply("sigmoid_nll", Binary::greater_equal, t, zero));
    const Variable s = sigmoid(x);
    const Variable bend = multiply(s, subtract_from(1, s));
    return sum_to(multiply(gy, multiply(bend, is_used)), x.shape());
  };
  const Array y = apply("sigmoid_nll", Binary::sigmoid_nll_slope, x.array(), t);
  return record("SigmoidCrossEntropyGrad", y, {{x, vjp_x}});
}

// Returns how many labels are not ignored, at least 1: the number is computed on their device, so
// that the host need not wait for it.
Variable counted(const Target& target) {
  const Variable t(cast(target.t, Dtype::float64));
  const Variable distance = absolute(add(t, -static_cast<double>(target.ignore)));
  return clip(sum(clip(distance, 0, 1)), 1, std::numeric_limits<double>::infinity());
}

}  // namespace

Variable sigmoid_nll(const Variable& x, const Array& labels) {
  require_floats("sigmoid_nll", x.array());
  const Array t = cast(to_device(labels, x.device()), x.dtype());
  auto vjp_x = [=](const Variable& gy) {
    return sum_to(multiply(gy, sigmoid_nll_slope(x, t)), x.shape());
  };
  const Array y = apply("sigmoid_nll", Binary::sigmoid_nll, x.array(), t);
  return record("SigmoidCrossEntropy", y, {{x, vjp_x}});
}

Variable huber(const Variable& x, const Variable& t, double delta) {
  require_floats("huber", x.array());
  auto vjp_x = [=](const Variable& gy) {
    return sum_to(product_with_difference(gy, x, t, delta), x.shape());
  };
  auto vjp_t = [=](const Variable& gy) {
    return sum_to(product_with_difference(gy, t, x, delta), t.shape());
  };
  return record("Huber", apply("huber", Binary::huber, x.array(), t.array(), delta),
                {{x, vjp_x}, {t, vjp_t}});
}

Variable bernoulli_nll(const Variable& x, const Variable& t) {
  require_floats("bernoulli_nll", x.array());
  auto vjp_x = [=](const Variable& gy) {
    const char* const op = "bernoulli_nll";
    const Variable slope =
        backprop_enabled() ? subtract(sigmoid(x), t)
                           : Variable(apply(op, Binary::bernoulli_nll_slope, x.array(), t.array()));
    return sum_to(multiply(gy, slope), x.shape());
  };
  auto vjp_t = [=](const Variable& gy) { return sum_to(multiply(gy, negative(x)), t.shape()); };
  return record("BernoulliNLL", apply("bernoulli_nll", Binary::bernoulli_nll, x.array(), t.array()),
                {{x, vjp_x}, {t, vjp_t}});
}

Variable softmax_nll(const Variable& x, const Array& t, const std::optional<Array>& class_weight,
                     std::int64_t ignore_label) {
  return nll(x, make_target(x, t, class_weight, ignore_label));
}

Variable softmax_cross_entropy(const Variable& x, const Array& t, bool normalize,
                               const std::optional<Array>& class_weight,
                               std::int64_t ignore_label) {
  const Target target = make_target(x, t, class_weight, ignore_label);
  const Variable total = sum(nll(x, target));
  const Device device = target.t.device();
  if (normalize && !device.is_host() && !device.is_meta()) {
    return multiply(total, cast(divide_into(1, counted(target)), total.dtype()));
  }
  double count = static_cast<double>(x.shape(0));
  if (normalize && device.is_host()) {
    const auto* labels = target.t.as<std::int64_t>();
    const auto ignored = std::count(labels, labels + target.t.size(), ignore_label);
    count = static_cast<double>(target.t.size() - ignored);
  }
  return multiply(total, 1 / std::max(count, 1.0));
}

}  // namespace renga
