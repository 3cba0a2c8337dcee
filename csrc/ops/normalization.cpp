// Batch normalization: statistics, forward and gradients. Its kernels are in normalization.cpu.cpp.
#include "ops/normalization.h"

#include "autograd/node.h"
#include "ops/arithmetic.h"
#include "ops/manipulation.h"
#include "ops/math.h"
#include "ops/normalization_fusion.h"
#include "ops/reduction.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<NormalizationKernels> normalization_kernels{"normalization"};

namespace {

Dtype statistics_dtype(Dtype x) { return x == Dtype::float64 ? Dtype::float64 : Dtype::float32; }

// A parameter as the kernels take it: a vector of the statistics' dtype.
Array as_vector(const Array& parameter, Dtype dtype) {
  const Array dense = contiguous(cast(parameter, dtype));
  return reshape_view(dense, {dense.size()});
}

// A vector over channels as the value or gradient of a parameter.
Variable as_parameter(const Array& vector, const Shape& shape, Dtype dtype) {
  return Variable(cast(reshape_view(vector, shape), dtype));
}

Array in_layout_of(const Channels& x, const Array& gy) {
  bool same = true;
  for (int axis = 0; axis < gy.ndim(); ++axis) {
    same = same && (gy.shape(axis) == 1 || gy.strides()[axis] == x.array.strides()[axis]);
  }
  if (same) return gy;
  const Array moved = empty_like(x.array, gy.dtype());
  copy(gy, moved);
  return moved;
}

Array times(const Array& a, const Array& b) {
  return apply("batch_normalization", Binary::multiply, a, b);
}

Array inverse_deviation(const Array& var, double eps) {
  return apply(Unary::rsqrt, apply(Unary::add, var, eps));
}

void update_running(const std::optional<Array>& running, const Array& vector, double decay,
                    double correction) {
  if (!running) return;
  const Array fresh = apply(Unary::multiply, vector, (1 - decay) * correction);
  const Array kept = apply(Unary::multiply, as_vector(*running, vector.dtype()), decay);
  const Array sum = apply("batch_normalization", Binary::add, kept, fresh);
  copy(reshape_view(sum, running->shape()), *running);
}

// A parameter stretched along the reduced axes by broadcasting, in the statistics' dtype.
Variable along_channels(const Variable& parameter, const Variable& x, const Axes& reduced) {
  Shape shape = x.shape();
  for (std::int64_t axis : reduced) shape[static_cast<int>(axis)] = 1;
  return cast(reshape(parameter, shape), statistics_dtype(x.dtype()));
}

// The gradient of a parameter, given in the shape of along_channels.
Variable back_to(const Variable& parameter, const Variable& gradient) {
  return cast(reshape(gradient, parameter.shape()), parameter.dtype());
}

struct Batch {
  Variable x, gamma, beta;
  Axes reduced;
  double eps;
  Array inv_std;  // a vector over channels
  Normalization of;
};

using Gradients = std::vector<Variable>;

// The gradients of x, gamma and beta in two passes over x and gy.
Gradients fused_gradients(const Batch& batch, const Variable& gy) {
  Normalization of = batch.of;
  const std::optional<Array> taken = take_gradient(gy, of);
  const Array gys = in_layout_of(of.x, taken ? *taken : gy.array());
  const auto& kernels = normalization_kernels.on(of.mean.device());
  const Array sum_g = empty_like(of.mean), sum_g_x = empty_like(of.mean);
  kernels.gradient_sums(of, gys, sum_g, sum_g_x);
  const Array ggamma = times(sum_g_x, batch.inv_std);

  const double share = 1.0 / static_cast<double>(std::max<std::int64_t>(1, of.x.layout.count()));
  const Array shift = apply(Unary::multiply, sum_g, share);
  const Array slope = apply(Unary::multiply, times(times(of.scale, ggamma), batch.inv_std), share);
  const Array gx = empty_like(of.x.array);
  kernels.input_grad(of, gys, shift, slope, gx);
  const Shape& shape = batch.gamma.shape();
  return {Variable(gx), as_parameter(ggamma, shape, batch.gamma.dtype()),
          as_parameter(sum_g, shape, batch.beta.dtype())};
}

// The same written with operations, for derivatives of higher order.
Gradients composed_gradients(const Batch& batch, const Variable& gradient) {
  const Axes& axes = batch.reduced;
  const Variable x = cast(batch.x, batch.of.mean.dtype()),
                 gy = cast(gradient, batch.of.mean.dtype());
  const Variable gamma = along_channels(batch.gamma, batch.x, axes);
  const double share = static_cast<double>(batch.of.mean.size()) /
                       static_cast<double>(std::max<std::int64_t>(1, x.size()));
  const Variable centred = subtract(x, multiply(sum(x, axes, true), share));
  const Variable var = multiply(sum(square(centred), axes, true), share);
  const Variable inv_std = rsqrt(add(var, batch.eps));
  const Variable x_hat = multiply(centred, inv_std);
  const Variable gbeta = sum(gy, axes, true);
  const Variable ggamma = sum(multiply(gy, x_hat), axes, true);
  const Variable common = multiply(add(gbeta, multiply(x_hat, ggamma)), share);
  const Variable gx = multiply(multiply(gamma, inv_std), subtract(gy, common));
  return {cast(gx, batch.x.dtype()), back_to(batch.gamma, ggamma), back_to(batch.beta, gbeta)};
}

// The gradients of x, gamma, beta, mean and var for given statistics.
Gradients fixed_gradients(std::span<const Variable> inputs, const Variable& gradient,
                          const Axes& axes, double eps) {
  const Dtype dtype = statistics_dtype(inputs[0].dtype());
  const auto channel = [&](int i) { return along_channels(inputs[i], inputs[0], axes); };
  const Variable x = cast(inputs[0], dtype), gy = cast(gradient, dtype);
  const Variable gamma = channel(1), mean = channel(3);
  const Variable inv_std = rsqrt(add(channel(4), eps));
  const Variable scale = multiply(gamma, inv_std);
  const Variable gbeta = sum(gy, axes, true);
  const Variable ggamma = multiply(sum(multiply(gy, subtract(x, mean)), axes, true), inv_std);
  const Variable gvar = multiply(multiply(multiply(ggamma, scale), inv_std), -0.5);
  return {cast(multiply(gy, scale), inputs[0].dtype()), back_to(inputs[1], ggamma),
          back_to(inputs[2], gbeta), back_to(inputs[3], negative(multiply(gbeta, scale))),
          back_to(inputs[4], gvar)};
}

void check(const char* op, const Variable& x, std::span<const Variable> parameters,
           const Axes& reduced) {
  require(is_float(x.dtype()), op, ": expected x of a float dtype, got ", x.dtype());
  Shape kept;
  for (int axis = 0; axis < x.ndim(); ++axis) {
    if (!reduced.contains(axis)) kept.push_back(x.shape(axis));
  }
  for (const Variable& p : parameters) {
    require(is_float(p.dtype()) && p.dtype() == parameters[0].dtype() && p.shape() == kept, op,
            ": expected parameters of one float dtype and of shape ", kept, ", x's without axes ",
            reduced, ", got ", p.dtype(), " and ", p.shape());
  }
}

// The normalization of x, whose way back may need scale and beta as they are now.
Normalization normalization(const Channels& x, const Array& mean, const Array& inv_std,
                            const Variable& gamma, const Variable& beta) {
  const Dtype dtype = mean.dtype();
  return {x, mean, times(as_vector(gamma.array(), dtype), inv_std),
          copy_of(as_vector(beta.array(), dtype))};
}

}  // namespace

Channels by_channels(const Array& x, const Axes& reduced) {
  // In the order of memory, reduced axes may come before and after the channels' axes, which must
  // lie together in their own order, as gamma's elements do.
  ChannelLayout layout{1, 1, 1};
  std::int64_t step = x.itemsize(), last = x.ndim();
  const Axes order = memory_order(x);
  bool fits = true;
  for (int i = order.size() - 1; i >= 0; --i) {
    const auto axis = static_cast<int>(order[i]);
    const std::int64_t extent = x.shape(axis);
    if (extent == 1) continue;
    fits = fits && x.strides()[axis] == step;
    step *= extent;
    if (reduced.contains(axis)) {
      (last == x.ndim() ? layout.inner : layout.outer) *= extent;
    } else {
      fits = fits && layout.outer == 1 && axis < last;
      layout.channels *= extent;
      last = axis;
    }
  }
  if (fits) return {x, layout};
  Axes channels_last = reduced;
  for (int axis = 0; axis < x.ndim(); ++axis) {
    if (!reduced.contains(axis)) channels_last.push_back(axis);
  }
  const Array moved = empty_in_order(x.shape(), channels_last, x.dtype(), x.device());
  copy(x, moved);
  return {moved, {layout.outer * layout.inner, layout.channels, 1}};
}

Axes normalization_axes(const char* op, const Variable& x, const Variable& gamma,
                        const std::optional<Axes>& axis) {
  if (axis) {
    const Axes axes = normalize_axes(op, *axis, x.ndim());
    require<std::runtime_error>(std::is_sorted(axes.begin(), axes.end()), op,
                                ": expected axes in ascending order, got ", *axis);
    return axes;
  }
  Axes axes;
  for (int i = 0; i < x.ndim(); ++i) {
    if (i == 0 || i > gamma.ndim()) axes.push_back(i);
  }
  return axes;
}

Variable batch_normalization(const Variable& x, const Variable& gamma, const Variable& beta,
                             double eps, const std::optional<Array>& running_mean,
                             const std::optional<Array>& running_var, double decay,
                             const std::optional<Axes>& axis) {
  const char* op = "batch_normalization";
  const Axes reduced = normalization_axes(op, x, gamma, axis);
  check(op, x, std::array{gamma, beta}, reduced);
  for (const auto& running : {running_mean, running_var}) {
    require(!running || running->shape() == gamma.shape(), op,
            ": expected running statistics of shape ", gamma.shape(), ", got ",
            running ? running->shape() : Shape{});
  }
  const bool stays = is_unshared(x.array());
  const Channels xs = by_channels(x.array(), reduced);
  const Array mean = empty({xs.layout.channels}, statistics_dtype(x.dtype()), xs.array.device());
  const Array var = empty_like(mean);
  normalization_kernels.on(mean.device()).moments(xs, mean, var);
  const Array inv_std = inverse_deviation(var, eps);
  const Normalization of = normalization(xs, mean, inv_std, gamma, beta);

  const auto m = static_cast<double>(xs.layout.count());
  if (m > 0) {
    update_running(running_mean, mean, decay, 1);
    update_running(running_var, var, decay, m / std::max(m - 1, 1.0));
  }
  auto back = [batch = Batch{x, gamma, beta, reduced, eps, inv_std, of}](
                  std::span<const Variable> gys, std::span<const int>) {
    return backprop_enabled() ? composed_gradients(batch, gys[0]) : fused_gradients(batch, gys[0]);
  };
  const Array y = empty_like(xs.array);
  const Variable result =
      record_all("BatchNormalization", {&y, 1}, std::array{x, gamma, beta}, std::move(back))[0];
  normalize_into(result, of, stays);
  return result;
}

Variable fixed_batch_normalization(const Variable& x, const Variable& gamma, const Variable& beta,
                                   const Variable& mean, const Variable& var, double eps,
                                   const std::optional<Axes>& axis) {
  const char* op = "fixed_batch_normalization";
  const Axes reduced = normalization_axes(op, x, gamma, axis);
  check(op, x, std::array{gamma, beta, mean, var}, reduced);
  const Dtype dtype = statistics_dtype(x.dtype());
  const Array inv_std = inverse_deviation(as_vector(var.array(), dtype), eps);
  const bool stays = is_unshared(x.array());
  const Normalization of =
      normalization(by_channels(x.array(), reduced), copy_of(as_vector(mean.array(), dtype)),
                    inv_std, gamma, beta);
  const std::array inputs{x, gamma, beta, mean, var};
  auto back = [inputs, reduced, eps](std::span<const Variable> gys, std::span<const int>) {
    return fixed_gradients(inputs, gys[0], reduced, eps);
  };
  const Array y = empty_like(of.x.array);
  const Variable result =
      record_all("FixedBatchNormalization", {&y, 1}, inputs, std::move(back))[0];
  normalize_into(result, of, stays);
  return result;
}

}  // namespace renga
