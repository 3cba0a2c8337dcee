#include "ops/normalization/gradients.h"

#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/math.h"
#include "ops/normalization/fusion.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {
namespace {

Array times(const Array& a, const Array& b) {
  return apply("batch_normalization", Binary::multiply, a, b);
}

// A vector over channels as the gradient of a parameter, which may have a part of them.
Variable as_parameter(const Array& vector, const Variable& parameter, std::int64_t first) {
  const Array part = slice_view(vector, 0, first, parameter.size());
  return Variable(cast(reshape_view(part, parameter.shape()), parameter.dtype()));
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

}  // namespace

Gradients fused_gradients(const NormalizedBatch& batch, const Variable& gy) {
  Normalization of = batch.of;
  const std::optional<Array> taken = take_gradient(gy, of);
  const Array gys = in_layout_of(of.x, taken ? *taken : gy.array());
  const auto& kernels = normalization_kernels.on(of.mean.device());
  // Rows: the gradients of beta, and those of gamma times the deviation.
  const Array own = empty({2, of.mean.size()}, of.mean.dtype(), of.mean.device());
  kernels.gradient_sums(of, gys, select_view(own, 0, 0), select_view(own, 0, 1));
  const Array all = batch.ranks ? sum_over(*batch.ranks, own) : own;
  const auto gbeta = [](const Array& sums) { return select_view(sums, 0, 0); };
  const auto ggamma = [&](const Array& sums) {
    return times(select_view(sums, 0, 1), batch.inv_std);
  };

  const double share = 1 / std::max(1.0, batch.count);
  const Array shift = apply(Unary::multiply, gbeta(all), share);
  const Array slope =
      apply(Unary::multiply, times(times(of.scale, ggamma(all)), batch.inv_std), share);
  const Array gx = empty_like(of.x.array);
  kernels.input_grad(of, gys, shift, slope, gx);
  const Array& wanted = batch.ranks && !batch.ranks->common ? own : all;
  const std::int64_t first = batch.ranks ? batch.ranks->first.value_or(0) : 0;
  return {Variable(gx), as_parameter(ggamma(wanted), batch.gamma, first),
          as_parameter(gbeta(wanted), batch.beta, first)};
}

Gradients composed_gradients(const NormalizedBatch& batch, const Variable& gradient) {
  const Dtype dtype = statistics_dtype(batch.x.dtype());
  const auto total = [&](const Variable& own) {
    return batch.ranks ? sum_over(*batch.ranks, own) : own;
  };
  const auto own_sum = [&](const Variable& a) { return sum(a, batch.reduced, true); };
  const Variable x = cast(batch.x, dtype), gy = cast(gradient, dtype);
  const double share = 1 / std::max(1.0, batch.count);
  const Variable centred = subtract(x, multiply(total(own_sum(x)), share));
  const Variable var = multiply(total(own_sum(square(centred))), share);
  const Variable inv_std = rsqrt(add(var, batch.eps));
  const Variable x_hat = multiply(centred, inv_std);
  const Variable gbeta = own_sum(gy), ggamma = own_sum(multiply(gy, x_hat));
  const Variable all_gbeta = total(gbeta), all_ggamma = total(ggamma);
  const Variable common = multiply(add(all_gbeta, multiply(x_hat, all_ggamma)), share);

  const Variable gamma =
      batch.ranks ? whole_parameter(*batch.ranks, batch.gamma, var.size()) : batch.gamma;
  const Variable scale = multiply(along_channels(gamma, batch.x, batch.reduced), inv_std);
  const Variable gx = multiply(scale, subtract(gy, common));
  const auto as_it_lies = [&](const Variable& parameter, const Variable& own, const Variable& all) {
    if (!batch.ranks) return back_to(parameter, own);
    return cast(parameter_gradient(*batch.ranks, own, all, parameter.shape()), parameter.dtype());
  };
  return {cast(gx, batch.x.dtype()), as_it_lies(batch.gamma, ggamma, all_ggamma),
          as_it_lies(batch.beta, gbeta, all_gbeta)};
}

Gradients fixed_gradients(std::span<const Variable> inputs, const Variable& gradient,
                          const Axes& reduced, double eps) {
  const Dtype dtype = statistics_dtype(inputs[0].dtype());
  const auto channel = [&](int i) { return along_channels(inputs[i], inputs[0], reduced); };
  const Variable x = cast(inputs[0], dtype), gy = cast(gradient, dtype);
  const Variable gamma = channel(1), mean = channel(3);
  const Variable inv_std = rsqrt(add(channel(4), eps));
  const Variable scale = multiply(gamma, inv_std);
  const Variable gbeta = sum(gy, reduced, true);
  const Variable ggamma = multiply(sum(multiply(gy, subtract(x, mean)), reduced, true), inv_std);
  const Variable gvar = multiply(multiply(multiply(ggamma, scale), inv_std), -0.5);
  return {cast(multiply(gy, scale), inputs[0].dtype()), back_to(inputs[1], ggamma),
          back_to(inputs[2], gbeta), back_to(inputs[3], negative(multiply(gbeta, scale))),
          back_to(inputs[4], gvar)};
}

}  // namespace renga
