#include "ops/normalization/gradients.h"

#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/math.h"
#include "ops/normalization/channel_vectors.h"
#include "ops/normalization/fusion.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {
namespace {

Array times(const Array& a, const Array& b) {
  return apply("batch_normalization", Binary::multiply, a, b);
}

// The gradient of a parameter, which may be a shard, from a vector over channels.
Variable as_parameter(const Array& vector, const Variable& parameter, std::int64_t channel_offset) {
  const Array shard = slice_view(vector, 0, channel_offset, parameter.size());
  return Variable(cast(reshape_view(shard, parameter.shape()), parameter.dtype()));
}

Array in_layout_of(const Channels& x, const Array& gy) {
  if (same_layout(gy, x.array)) return gy;
  const Array moved = empty_like(x.array, gy.dtype());
  copy(gy, moved);
  return moved;
}

// A parameter with axes of extent 1 where x is reduced, in the statistics' dtype.
Variable along_channels(const Variable& parameter, const Variable& x, const Axes& reduced) {
  Shape shape = x.shape();
  for (std::int64_t axis : reduced) shape[static_cast<int>(axis)] = 1;
  return cast(reshape(parameter, shape), wide_dtype(x.dtype()));
}

// The gradient of a parameter from that of along_channels.
Variable to_parameter(const Variable& parameter, const Variable& gradient) {
  return cast(reshape(gradient, parameter.shape()), parameter.dtype());
}

}  // namespace

Gradients fused_gradients(const NormalizedBatch& batch, const Variable& gy) {
  Normalization normalization = batch.normalization;
  const std::optional<Array> fused = fuse_gradient(gy, normalization);
  const Array gys = in_layout_of(normalization.x, fused ? *fused : gy.array());
  const auto& kernels = normalization_kernels.on(normalization.mean.device());
  // Rows: the gradient of beta, and that of gamma times the standard deviation.
  const Array local = empty({2, normalization.mean.size()}, normalization.mean.dtype(),
                            normalization.mean.device());
  kernels.gradient_sums(normalization, gys, select_view(local, 0, 0), select_view(local, 0, 1));
  const Array all = batch.ranks ? sum_over(*batch.ranks, local) : local;
  const double weight = 1 / std::max(1.0, batch.count);
  const Array shift = empty_like(batch.inv_std), slope = empty_like(batch.inv_std);
  Array ggamma = empty_like(batch.inv_std);
  channel_vector_kernels.on(all.device())
      .slopes(select_view(all, 0, 0), select_view(all, 0, 1), batch.inv_std, normalization.scale,
              weight, ggamma, shift, slope);
  const Array gx = empty_like(normalization.x.array);
  kernels.input_grad(normalization, gys, shift, slope, gx);
  const bool of_rank = batch.ranks && !batch.ranks->shared_parameters;
  if (of_rank) ggamma = times(select_view(local, 0, 1), batch.inv_std);
  const Array gbeta = select_view(of_rank ? local : all, 0, 0);
  const std::int64_t offset = batch.ranks ? batch.ranks->channel_offset.value_or(0) : 0;
  return {Variable(gx), as_parameter(ggamma, batch.gamma, offset),
          as_parameter(gbeta, batch.beta, offset)};
}

Gradients composed_gradients(const NormalizedBatch& batch, const Variable& gradient) {
  const Dtype dtype = wide_dtype(batch.x.dtype());
  const auto global_sum = [&](const Variable& local) {
    return batch.ranks ? sum_over(*batch.ranks, local) : local;
  };
  const auto local_sum = [&](const Variable& a) { return sum(a, batch.reduced, true); };
  const Variable x = cast(batch.x, dtype), gy = cast(gradient, dtype);
  const double weight = 1 / std::max(1.0, batch.count);
  const Variable centred = subtract(x, multiply(global_sum(local_sum(x)), weight));
  const Variable var = multiply(global_sum(local_sum(square(centred))), weight);
  const Variable inv_std = rsqrt(add(var, batch.eps));
  const Variable x_hat = multiply(centred, inv_std);
  const Variable gbeta = local_sum(gy), ggamma = local_sum(multiply(gy, x_hat));
  const Variable all_gbeta = global_sum(gbeta), all_ggamma = global_sum(ggamma);
  const Variable correction = multiply(add(all_gbeta, multiply(x_hat, all_ggamma)), weight);

  const Variable gamma =
      batch.ranks ? gather_parameter(*batch.ranks, batch.gamma, var.size()) : batch.gamma;
  const Variable scale = multiply(along_channels(gamma, batch.x, batch.reduced), inv_std);
  const Variable gx = multiply(scale, subtract(gy, correction));
  const auto local_gradient = [&](const Variable& parameter, const Variable& local,
                                  const Variable& all) {
    if (!batch.ranks) return to_parameter(parameter, local);
    return cast(parameter_gradient(*batch.ranks, local, all, parameter.shape()), parameter.dtype());
  };
  return {cast(gx, batch.x.dtype()), local_gradient(batch.gamma, ggamma, all_ggamma),
          local_gradient(batch.beta, gbeta, all_gbeta)};
}

Gradients fused_fixed_gradients(std::span<const Variable> inputs,
                                const Normalization& normalization, const Array& inv_std,
                                const Variable& gy) {
  const Array gys = in_layout_of(normalization.x, gy.array());
  const Array &scale = normalization.scale, gbeta = empty_like(scale), sum_g_x = empty_like(scale);
  const auto& kernels = normalization_kernels.on(scale.device());
  kernels.gradient_sums(normalization, gys, gbeta, sum_g_x);
  const Array ggamma = times(sum_g_x, inv_std);
  const auto scaled = [&](const Array& v, double factor) {
    return apply(Unary::multiply, times(v, scale), factor);
  };
  const std::array vectors{ggamma, gbeta, scaled(gbeta, -1), scaled(times(ggamma, inv_std), -0.5)};
  const Array gx = empty_like(gys), zero = zeros(scale.shape(), scale.dtype(), scale.device());
  kernels.normalize({{gys, normalization.x.layout}, zero, scale, zero}, gx);
  Gradients gxs{Variable(gx)};
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    gxs.push_back(as_parameter(vectors[i], inputs[i + 1], 0));
  }
  return gxs;
}

Gradients composed_fixed_gradients(std::span<const Variable> inputs, const Variable& gradient,
                                   const Axes& reduced, double eps) {
  const Dtype dtype = wide_dtype(inputs[0].dtype());
  const auto channel = [&](int i) { return along_channels(inputs[i], inputs[0], reduced); };
  const Variable x = cast(inputs[0], dtype), gy = cast(gradient, dtype);
  const Variable gamma = channel(1), mean = channel(3);
  const Variable inv_std = rsqrt(add(channel(4), eps));
  const Variable scale = multiply(gamma, inv_std);
  const Variable gbeta = sum(gy, reduced, true);
  const Variable ggamma = multiply(sum(multiply(gy, subtract(x, mean)), reduced, true), inv_std);
  const Variable gvar = multiply(multiply(multiply(ggamma, scale), inv_std), -0.5);
  return {cast(multiply(gy, scale), inputs[0].dtype()), to_parameter(inputs[1], ggamma),
          to_parameter(inputs[2], gbeta), to_parameter(inputs[3], negative(multiply(gbeta, scale))),
          to_parameter(inputs[4], gvar)};
}

}  // namespace renga
