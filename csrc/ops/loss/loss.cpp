#include "ops/loss/loss.h"

#include <algorithm>

#include "autograd/node.h"
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

// The checked labels and weights of softmax_nll.
struct Target {
  Array t, weight;
  std::int64_t ignore;
};

Target make_target(const Variable& x, const Array& t, const std::optional<Array>& weight,
                   std::int64_t ignore) {
  const char* op = "softmax_cross_entropy";
  require(is_float(x.dtype()), op, ": expected x of a float dtype, got ", x.dtype());
  Shape samples = x.shape();
  require(x.ndim() >= 2, op, ": expected x of shape (N, C, ...), got ", x.shape());
  samples.erase(1);
  require(t.shape() == samples, op, ": expected t of shape ", samples, " for x of shape ",
          x.shape(), ", got ", t.shape());
  if (weight) {
    require<std::invalid_argument>(weight->ndim() == 1, op,
                                   ": expected class_weight with 1 axis, got ", weight->shape());
    require(weight->shape(0) == x.shape(1) && weight->dtype() == x.dtype(), op,
            ": expected class_weight of shape (", x.shape(1), ",) and dtype ", x.dtype(), ", got ",
            weight->shape(), " and ", weight->dtype());
  }
  return {checked_indices(op, "t", t, x.shape(1), x.device(), ignore),
          weight ? contiguous(to_device(*weight, x.device())) : Array(), ignore};
}

// The gradient with respect to x, written with operations for second derivatives.
Variable composed_grad(const Variable& x, const Variable& log_p, const Target& target,
                       const Variable& gy) {
  // With gy = 1 the kernel returns -weight[t] onehot(t) for log_p = -inf, and that plus weight[t]
  // for log_p = 0.
  const Array minus =
      full(x.shape(), -std::numeric_limits<double>::infinity(), x.dtype(), x.device());
  const Array ones = full(gy.shape(), 1, gy.dtype(), gy.device());
  const Array onehot = empty_like(x.array()), weights = empty_like(x.array());
  const LossKernels& kernels = loss_kernels.on(x.device());
  kernels.nll_grad(minus, target.t, target.weight, target.ignore, ones, onehot);
  kernels.nll_grad(zeros(x.shape(), x.dtype(), x.device()), target.t, target.weight, target.ignore,
                   ones, weights);
  const Variable scale = subtract(Variable(weights), Variable(onehot));
  const Variable slope = add(multiply(exp(log_p), scale), Variable(onehot));
  return multiply(slope, expand_dims(gy, 1));
}

// Losses of bfloat16 scores are computed in float32.
Variable scores(const Variable& x) {
  return x.dtype() == Dtype::bfloat16 ? cast(x, Dtype::float32) : x;
}

Variable nll(const Variable& x, const Target& target) {
  const Array log_p = empty_like(x.array());
  Array loss = empty(target.t.shape(), x.dtype(), x.device());
  loss_kernels.on(x.device()).nll(x.array(), target.t, target.weight, target.ignore, log_p, loss);
  auto vjp_x = [=](const Variable& gy) {
    if (backprop_enabled()) return composed_grad(x, log_softmax(x, 1), target, gy);
    const Array gx = empty_like(log_p);
    loss_kernels.on(gx.device())
        .nll_grad(log_p, target.t, target.weight, target.ignore, gy.array(), gx);
    return Variable(gx);
  };
  return record("SoftmaxCrossEntropy", loss, {{x, vjp_x}});
}

}  // namespace

Variable softmax_nll(const Variable& x, const Array& t, const std::optional<Array>& class_weight,
                     std::int64_t ignore_label) {
  const Variable x_scores = scores(x);
  return nll(x_scores, make_target(x_scores, t, class_weight, ignore_label));
}

Variable softmax_cross_entropy(const Variable& input, const Array& t, bool normalize,
                               const std::optional<Array>& class_weight,
                               std::int64_t ignore_label) {
  const Variable x = scores(input);
  const Target target = make_target(x, t, class_weight, ignore_label);
  double count = static_cast<double>(x.shape(0));
  if (normalize && !target.t.device().is_meta()) {
    const Array on_host = to_device(target.t, Device{});
    const auto* labels = on_host.as<std::int64_t>();
    const auto ignored = std::count(labels, labels + target.t.size(), ignore_label);
    count = static_cast<double>(target.t.size() - ignored);
  }
  return multiply(sum(nll(x, target)), 1 / std::max(count, 1.0));
}

}  // namespace renga
