// Group normalization: for the kernels of batch normalization, the channels of each sample are
// channels of their own, whose statistics are then those of their groups.
#include <algorithm>

#include "autograd/node.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/math.h"
#include "ops/normalization/channel_vectors.h"
#include "ops/normalization/fusion.h"
#include "ops/normalization/normalization.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "ops/shape/one_device.h"
#include "tensor/views.h"

namespace renga {
namespace {

// GroupSamples as kernels take them: all at once, or one after the other where channels are last.
struct GroupSamples {
  Array x;
  bool has_channels_last;
  std::int64_t parts;
  ChannelLayout layout;  // of a part

  explicit GroupSamples(const Array& given)
      : x(given), has_channels_last(false), parts(1), layout{} {
    const std::int64_t n = x.shape(0), c = x.shape(1), inner = n * c == 0 ? 0 : x.size() / (n * c);
    layout = {std::min<std::int64_t>(inner, 1), n * c, std::max<std::int64_t>(inner, 1)};
    Axes last;
    for (int axis = 0; axis < x.ndim(); ++axis) {
      if (axis != 1) last.push_back(axis);
    }
    last.push_back(1);
    if (inner > 1 && c > 1 && x.device().is_host() && transpose_view(x, last).is_contiguous()) {
      has_channels_last = true;
      parts = n;
      layout = {inner, c, 1};
    } else {
      x = contiguous(x);
    }
  }

  Array part(const Array& of_x, std::int64_t i) const {
    return has_channels_last ? select_view(of_x, 0, i) : of_x;
  }
  Array vector(const Array& channels, std::int64_t i) const {
    return slice_view(channels, 0, i * layout.channels, layout.channels);
  }
  GroupVectors part(const GroupVectors& all, std::int64_t i) const {
    return {vector(all.mean, i),  vector(all.inv_std, i),
            vector(all.scale, i), vector(all.beta, i),
            all.groups,           all.channels};
  }
  Normalization part(const Normalization& all, std::int64_t i) const {
    Normalization one = all;
    one.x = {part(x, i), layout};
    one.mean = vector(all.mean, i);
    one.scale = vector(all.scale, i);
    one.beta = vector(all.beta, i);
    return one;
  }
  // The layout of a part's moments: those of groups, or of channels that are last.
  ChannelLayout moments(std::int64_t groups) const {
    if (has_channels_last || layout.outer == 0) return layout;
    return {1, x.shape(0) * groups, x.size() / (x.shape(0) * groups)};
  }
};

struct GroupOperands {
  Variable x, gamma, beta;
  std::int64_t groups;
  double eps;
};

// Computes the gradients of x, gamma and beta with operations.
std::vector<Variable> composed_group_gradients(const GroupOperands& o, const Variable& given_gy) {
  const Dtype dtype = wide_dtype(o.x.dtype());
  const std::int64_t groups = o.x.shape(0) * o.groups;
  const Shape rows{groups, o.x.size() / std::max<std::int64_t>(groups, 1)};
  Axes others;
  Shape channels;
  for (int axis = 0; axis < o.x.ndim(); ++axis) {
    if (axis != 1) others.push_back(axis);
    channels.push_back(axis == 1 ? o.x.shape(1) : 1);
  }
  const double weight = 1 / static_cast<double>(std::max<std::int64_t>(rows[1], 1));
  const auto mean = [&](const Variable& v) { return multiply(sum(v, Axes{1}, true), weight); };
  const Variable x = reshape(cast(o.x, dtype), rows), gy = cast(given_gy, dtype);
  const Variable centred = subtract(x, mean(x));
  const Variable inv_std = rsqrt(add(mean(square(centred)), o.eps));
  const Variable normalized = multiply(centred, inv_std);
  const Variable g = reshape(multiply(gy, reshape(cast(o.gamma, dtype), channels)), rows);
  const Variable gx = multiply(
      inv_std, subtract(subtract(g, mean(g)), multiply(normalized, mean(multiply(g, normalized)))));
  const auto to_parameter = [&](const Variable& v) {
    return cast(sum(v, others), o.gamma.dtype());
  };
  return {cast(reshape(gx, o.x.shape()), o.x.dtype()),
          to_parameter(multiply(gy, reshape(normalized, o.x.shape()))), to_parameter(gy)};
}

// Computes the gradients of x, gamma and beta without graph.
std::vector<Variable> fused_group_gradients(const GroupOperands& o, const GroupSamples& samples,
                                            Normalization all, const GroupVectors& vectors,
                                            const Variable& gy) {
  const std::optional<Array> fused =
      samples.has_channels_last ? std::nullopt : fuse_gradient(gy, all);
  Array gys = fused ? *fused : gy.array();
  if (!same_layout(gys, samples.x)) {
    const Array moved = empty_like(samples.x, gys.dtype());
    copy(gys, moved);
    gys = moved;
  }
  const auto& kernels = normalization_kernels.on(gys.device());
  const auto& vector_kernels = channel_vector_kernels.on(gys.device());
  const Array sum_g = empty_like(vectors.mean), sum_g_x = empty_like(vectors.mean);
  const Array shift = empty_like(vectors.mean), slope = empty_like(vectors.mean);
  const Array ggamma = empty(o.gamma.shape(), vectors.mean.dtype(), gys.device());
  const Array gbeta = empty_like(ggamma), gx = empty_like(samples.x);
  const double count = static_cast<double>(gys.size()) /
                       static_cast<double>(std::max<std::int64_t>(gys.shape(0) * o.groups, 1));
  // The second pass over a part finds it in the caches.
  for (std::int64_t i = 0; i < samples.parts; ++i) {
    const Normalization one = samples.part(all, i);
    const Array gy_part = samples.part(gys, i);
    const Array sum = samples.vector(sum_g, i), product = samples.vector(sum_g_x, i);
    const Array b = samples.vector(shift, i), k = samples.vector(slope, i);
    kernels.gradient_sums(one, gy_part, sum, product);
    vector_kernels.group_slopes(sum, product, samples.part(vectors, i), 1 / std::max(1.0, count), b,
                                k);
    kernels.input_grad(one, gy_part, b, k, samples.part(gx, i));
  }
  vector_kernels.group_parameters(sum_g, sum_g_x, vectors.inv_std, ggamma, gbeta);
  return {Variable(gx), Variable(cast(ggamma, o.gamma.dtype())),
          Variable(cast(gbeta, o.beta.dtype()))};
}

}  // namespace

Variable group_normalization(const Variable& x, std::int64_t groups, const Variable& gamma,
                             const Variable& beta, double eps) {
  const char* op = "group_normalization";
  for (const Variable* v : {&x, &gamma, &beta}) require_floats(op, v->array());
  require_one_device(op, x.device(), gamma.device());
  require_one_device(op, x.device(), beta.device());
  require(x.ndim() >= 2 && gamma.ndim() == 1 && gamma.shape(0) == x.shape(1) &&
              beta.shape() == gamma.shape(),
          op, ": expected shapes (N, C, ...), (C,) and (C,), got ", x.shape(), ", ", gamma.shape(),
          " and ", beta.shape());
  require<std::invalid_argument>(groups > 0 && x.shape(1) % groups == 0, op, ": expected ",
                                 x.shape(1), " channels in ", groups, " groups");
  const GroupOperands o{x, gamma, beta, groups, eps};
  const UnsharedMemory memory(x.array());
  const GroupSamples samples(x.array());
  const auto& kernels = normalization_kernels.on(x.device());
  const auto& vector_kernels = channel_vector_kernels.on(x.device());
  const Dtype dtype = wide_dtype(x.dtype());
  const Array all_means = empty({x.shape(0) * x.shape(1)}, dtype, x.device());
  const GroupVectors vectors{
      all_means, empty_like(all_means), empty_like(all_means), empty_like(all_means),
      groups,    x.shape(1) / groups};
  const Array wide_gamma = contiguous(cast(gamma.array(), dtype));
  const Array wide_beta = contiguous(cast(beta.array(), dtype));
  const Normalization all{{samples.x, samples.layout}, vectors.mean, vectors.scale, vectors.beta};
  const Array y = empty_like(samples.x);
  for (std::int64_t i = 0; i < samples.parts; ++i) {
    const ChannelLayout of_moments = samples.moments(groups);
    const Array mean = empty({of_moments.channels}, dtype, x.device()), var = empty_like(mean);
    kernels.moments({samples.part(samples.x, i), of_moments}, mean, var);
    vector_kernels.group_scale(mean, var, wide_gamma, wide_beta, eps, samples.part(vectors, i));
    // The second pass over a part finds it in the caches.
    if (samples.has_channels_last) kernels.normalize(samples.part(all, i), samples.part(y, i));
  }
  auto back = [=](std::span<const Variable> gys, std::span<const int>, Node&) {
    return backprop_enabled() ? composed_group_gradients(o, gys[0])
                              : fused_group_gradients(o, samples, all, vectors, gys[0]);
  };
  const Variable result =
      record_all("GroupNormalization", {&y, 1}, std::array{x, gamma, beta}, std::move(back))[0];
  if (!samples.has_channels_last) normalize_into(result, all, memory);
  return result;
}

}  // namespace renga
