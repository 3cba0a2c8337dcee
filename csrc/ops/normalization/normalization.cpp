// Batch normalization: statistics and forward. Its kernels are in cpu/ and cuda/.
#include "ops/normalization/normalization.h"

#include <algorithm>

#include "autograd/node.h"
#include "ops/normalization/channel_vectors.h"
#include "ops/normalization/fusion.h"
#include "ops/normalization/gradients.h"
#include "ops/shape/one_device.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<NormalizationKernels> normalization_kernels{"normalization"};
constinit KernelTable<ChannelVectorKernels> channel_vector_kernels{"normalization"};

namespace {

// A parameter as kernels take it: a vector of the statistics' dtype.
Array as_vector(const Array& parameter, Dtype dtype) {
  const Array dense = contiguous(cast(parameter, dtype));
  return reshape_view(dense, {dense.size()});
}

struct Scaled {
  Normalization normalization;
  Array inv_std;
};

// The normalization of x. beta is copied: the backward pass may need its present values.
Scaled make_normalization(const Channels& x, const Array& mean, const Array& var,
                          const Array& gamma, const Array& beta, double eps) {
  const Array inv_std = empty_like(var), scale = empty_like(var);
  channel_vector_kernels.on(var.device()).scale(var, gamma, eps, inv_std, scale);
  return {{x, mean, scale, copy_of(beta)}, inv_std};
}

void update_running(const std::optional<OutputArray>& running, const Array& vector, double decay,
                    double correction) {
  if (!running) return;
  const Array& old = running->array;  // on x's device, or on the host
  const Array average = as_vector(to_device(old, vector.device()), vector.dtype());
  channel_vector_kernels.on(vector.device())
      .average(vector, decay, (1 - decay) * correction, average);
  if (average.data() != old.data()) copy(reshape_view(average, old.shape()), old);
}

Shape shape_without(const Axes& axes, const Array& x) {
  Shape shape;
  for (int axis = 0; axis < x.ndim(); ++axis) {
    if (!axes.contains(axis)) shape.push_back(x.shape(axis));
  }
  return shape;
}

// Parameters have the axes of x that are not reduced, or are a shard of the channels.
void check(const char* op, const Variable& x, std::span<const Variable> parameters,
           const Axes& reduced, std::optional<std::int64_t> first = {}) {
  const Dtype dtype = x.dtype(op);
  require(is_float(dtype), op, ": expected x of a float dtype, got ", dtype);
  Shape expected = shape_without(reduced, x.array());
  const Variable& one = parameters[0];
  const bool sharded =
      first && *first >= 0 && one.ndim(op) == 1 && *first + one.size() <= expected.product();
  if (sharded) expected = one.shape();
  for (const Variable& p : parameters) {
    require_one_device(op, x.device(), p.device(op));
    const bool fits = is_float(p.dtype()) && are_compatible(p.dtype(), one.dtype());
    require(fits && p.shape() == expected, op,
            ": expected parameters of one float dtype and of shape ", expected,
            ", x's without axes ", reduced, ", got ", p.dtype(), " and ", p.shape());
  }
}

struct BatchOptions {
  double eps;
  const std::optional<OutputArray>& running_mean;
  const std::optional<OutputArray>& running_var;
  double decay;
  const std::optional<Axes>& axis;
};

void update_running(const BatchOptions& options, const BatchStatistics& statistics,
                    std::int64_t first, std::int64_t channels) {
  if (statistics.count == 0 || current(&Settings::recomputing)) return;
  const auto shard = [=](const Array& vector) { return slice_view(vector, 0, first, channels); };
  update_running(options.running_mean, shard(statistics.mean), options.decay, 1);
  update_running(options.running_var, shard(statistics.var), options.decay,
                 statistics.count / std::max(statistics.count - 1, 1.0));
}

std::array<Array, 2> moments(const Channels& x) {
  const Array mean = empty({x.layout.channels}, wide_dtype(x.array.dtype()), x.array.device());
  const Array var = empty_like(mean);
  normalization_kernels.on(mean.device()).moments(x, mean, var);
  return {mean, var};
}

// With the statistics of all ranks' batches, if there are ranks.
Variable normalize_batch(const char* op, const char* name, const Variable& x, const Variable& gamma,
                         const Variable& beta, const std::optional<StatisticsGroup>& ranks,
                         const BatchOptions& options) {
  const Axes reduced = normalization_axes(op, x, gamma, options.axis);
  const std::optional<std::int64_t> first = ranks ? ranks->channel_offset : std::nullopt;
  check(op, x, std::array{gamma, beta}, reduced, first);
  for (const auto& running : {options.running_mean, options.running_var}) {
    if (!running) continue;
    const Array& array = running->array;
    require(array.shape() == gamma.shape() && is_float(array.dtype()), op,
            ": expected running statistics of a float dtype and of shape ", gamma.shape(), ", got ",
            array.dtype(), " and ", array.shape());
  }
  const UnsharedMemory memory(x.array());
  const Channels xs = by_channels(x.array(), reduced);
  const Dtype dtype = wide_dtype(x.dtype());
  const auto [mean, var] = moments(xs);
  BatchStatistics statistics{static_cast<double>(xs.layout.count()), mean, var,
                             as_vector(gamma.array(), dtype), as_vector(beta.array(), dtype)};
  if (ranks) statistics = merge(*ranks, statistics);
  const auto [normalization, inv_std] = make_normalization(
      xs, statistics.mean, statistics.var, statistics.gamma, statistics.beta, options.eps);
  update_running(options, statistics, first.value_or(0), gamma.size());

  std::vector<Variable> inputs{x, gamma, beta};
  // An extra input that always requires a gradient: every rank runs the backward pass if any does.
  if (ranks) inputs.emplace_back(empty({0}, dtype), true);
  auto back = [batch = NormalizedBatch{x, gamma, beta, reduced, options.eps, statistics.count,
                                       inv_std, normalization, ranks}](
                  std::span<const Variable> gys, std::span<const int>, Node&) {
    Gradients gxs =
        backprop_enabled() ? composed_gradients(batch, gys[0]) : fused_gradients(batch, gys[0]);
    if (batch.ranks) gxs.emplace_back();
    return gxs;
  };
  const Array y = empty_like(xs.array);
  const Variable result = record_all(name, {&y, 1}, inputs, std::move(back))[0];
  normalize_into(result, normalization, memory);
  return result;
}

}  // namespace

Channels by_channels(const Array& x, const Axes& reduced) {
  // In memory order, reduced axes may come before and after the channels' axes, which must adjoin
  // in their own order, as gamma's elements do.
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
  if (layout.count() == 0) return {x, {0, layout.channels, 1}};
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
    const Axes axes = normalize_axes(op, *axis, x.ndim(op));
    require<std::runtime_error>(std::is_sorted(axes.begin(), axes.end()), op,
                                ": expected axes in ascending order, got ", *axis);
    return axes;
  }
  Axes axes;
  for (int i = 0; i < x.ndim(op); ++i) {
    if (i == 0 || i > gamma.ndim(op)) axes.push_back(i);
  }
  return axes;
}

std::array<Array, 2> moments(const Array& x, const Axes& axes) {
  const Shape others = shape_without(axes, x);
  const auto [mean, var] = moments(by_channels(x, axes));
  return {reshape_view(mean, others), reshape_view(var, others)};
}

Variable batch_normalization(const Variable& x, const Variable& gamma, const Variable& beta,
                             double eps, const std::optional<OutputArray>& running_mean,
                             const std::optional<OutputArray>& running_var, double decay,
                             const std::optional<Axes>& axis) {
  return normalize_batch("batch_normalization", "BatchNormalization", x, gamma, beta, {},
                         {eps, running_mean, running_var, decay, axis});
}

Variable multi_node_batch_normalization(const Variable& x, const Variable& gamma,
                                        const Variable& beta, const StatisticsGroup& ranks,
                                        double eps, const std::optional<OutputArray>& running_mean,
                                        const std::optional<OutputArray>& running_var, double decay,
                                        const std::optional<Axes>& axis) {
  return normalize_batch("multi_node_batch_normalization", "MultiNodeBatchNormalization", x, gamma,
                         beta, ranks, {eps, running_mean, running_var, decay, axis});
}

Variable fixed_batch_normalization(const Variable& x, const Variable& gamma, const Variable& beta,
                                   const Variable& mean, const Variable& var, double eps,
                                   const std::optional<Axes>& axis) {
  const char* op = "fixed_batch_normalization";
  const Axes reduced = normalization_axes(op, x, gamma, axis);
  check(op, x, std::array{gamma, beta, mean, var}, reduced);
  const Dtype dtype = wide_dtype(x.dtype());
  const std::array inputs{x, gamma, beta, mean, var};
  const bool is_recorded = backprop_enabled() && any_requires_grad(inputs);
  const Ref<const DeferredParts> source = is_recorded ? nullptr : parts_to_normalize(x, reduced);
  const Array& array = source ? x.metadata() : x.array();
  const UnsharedMemory memory(array);
  const Scaled scaled =
      make_normalization(by_channels(array, reduced), copy_of(as_vector(mean.array(), dtype)),
                         as_vector(var.array(), dtype), as_vector(gamma.array(), dtype),
                         as_vector(beta.array(), dtype), eps);
  auto back = [=](std::span<const Variable> gys, std::span<const int>, Node&) {
    return backprop_enabled()
               ? composed_fixed_gradients(inputs, gys[0], reduced, eps)
               : fused_fixed_gradients(inputs, scaled.normalization, scaled.inv_std, gys[0]);
  };
  const Array y = empty_like(scaled.normalization.x.array);
  const Variable result =
      record_all("FixedBatchNormalization", {&y, 1}, inputs, std::move(back))[0];
  if (source) {
    result.body()->defer(
        make_ref<DeferredNormalization>(result.metadata(), scaled.normalization, source));
  } else {
    normalize_into(result, scaled.normalization, memory);
  }
  return result;
}

}  // namespace renga
