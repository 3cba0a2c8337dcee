// Batch normalization.
#pragma once

#include <array>
#include <optional>

#include "devices/kernel_table.h"
#include "ops/elementwise/activation.h"
#include "ops/list.h"
#include "ops/normalization/multi_node.h"
#include "ops/random/random.h"

namespace renga {

// The layout of channels in a dense array: element i of channel c in block o is at
// (o * channels + c) * inner + i. inner is 1 if channels are last.
struct ChannelLayout {
  std::int64_t outer, channels, inner;
  RENGA_HOST_DEVICE std::int64_t count() const { return outer * inner; }  // elements per channel
};

// An array with a layout that kernels know.
struct Channels {
  Array array;
  ChannelLayout layout;
};
// x itself if it has such a layout, else a copy with channels last.
Channels by_channels(const Array& x, const Axes& reduced);

// y = dropout(activation((x - mean) scale + beta + residual)). The vectors over channels are
// float64 if x is, else float32. The inputs of addition, activation and dropout are rounded to x's
// dtype, so that y has the same bits as separate operations.
struct Normalization {
  Channels x;
  Array mean, scale, beta;
  Activation activation = {};
  std::optional<DropoutMask> dropout = {};
  // The residual has x's shape, dtype and strides; it is undefined without an addition. Only the
  // forward pass has one.
  Array residual = {};
};

// gy, y and gx have x's dtype and layout. g is gy after the backward passes of dropout and
// activation.
struct NormalizationKernels {
  // The mean and the mean squared difference from it.
  void (*moments)(const Channels& x, const Array& mean, const Array& var);
  void (*normalize)(const Normalization& normalization, const Array& y);
  // Sums over each channel of g and of g (x - mean).
  void (*gradient_sums)(const Normalization& normalization, const Array& gy, const Array& sum_g,
                        const Array& sum_g_x);
  // gx = g scale - shift - (x - mean) slope
  void (*input_grad)(const Normalization& normalization, const Array& gy, const Array& shift,
                     const Array& slope, const Array& gx);
};
extern KernelTable<NormalizationKernels> normalization_kernels;

// The axes to reduce over: `axis`, checked, or by default all but those of gamma, which start at
// axis 1.
Axes normalization_axes(const char* op, const Variable& x, const Variable& gamma,
                        const std::optional<Axes>& axis);

// The means over the axes and the mean squared differences from them, of the shape of the other
// axes: in float64 if x is, else in float32.
std::array<Array, 2> moments(const Array& x, const Axes& axes);

// With the batch's own statistics. Running statistics are updated in place if given, with the
// unbiased variance.
Variable batch_normalization(const Variable& x, const Variable& gamma, const Variable& beta,
                             double eps = 2e-5, const std::optional<OutputArray>& running_mean = {},
                             const std::optional<OutputArray>& running_var = {}, double decay = 0.9,
                             const std::optional<Axes>& axis = {});
// With the statistics of all ranks' batches. gamma, beta and the running statistics may be sharded.
Variable multi_node_batch_normalization(const Variable& x, const Variable& gamma,
                                        const Variable& beta, const StatisticsGroup& ranks,
                                        double eps = 2e-5,
                                        const std::optional<OutputArray>& running_mean = {},
                                        const std::optional<OutputArray>& running_var = {},
                                        double decay = 0.9, const std::optional<Axes>& axis = {});
// With given statistics.
Variable fixed_batch_normalization(const Variable& x, const Variable& gamma, const Variable& beta,
                                   const Variable& mean, const Variable& var, double eps = 2e-5,
                                   const std::optional<Axes>& axis = {});
// With the statistics of groups of channels of each sample.
Variable group_normalization(const Variable& x, std::int64_t groups, const Variable& gamma,
                             const Variable& beta, double eps = 1e-5);
// x / (|x| + eps), lengths taken over the axes.
Variable normalize(const Variable& x, double eps, const Axes& axis);

template <class Visit>
void list_normalization_ops(Visit&& visit) {
  constexpr Traits of_batch{
      .locality = Locality::channelwise, .inputs = 1, .flops = {.per_input = 8}};
  constexpr Traits fixed{.locality = Locality::pointwise, .inputs = 1, .flops = {.per_input = 4}};
  const Default<double> eps{"eps", 2e-5};
  const Default<std::optional<OutputArray>> none{"running_mean", std::nullopt};
  const Default<std::optional<OutputArray>> no_var{"running_var", std::nullopt};
  const Default<std::optional<Axes>> axis{"axis", std::nullopt};
  visit(Op{"batch_normalization", "(N, C, ...), (C,), (C,) -> (N, C, ...)",
           "Mean 0 and variance 1 over the batch, times gamma, plus beta.", of_batch},
        &batch_normalization, Arg{"x"}, Arg{"gamma"}, Arg{"beta"}, eps, none, no_var,
        Default{"decay", 0.9}, axis);
  visit(Op{"multi_node_batch_normalization", "(N, C, ...), (C,), (C,) -> (N, C, ...)",
           "batch_normalization over the batches of all ranks together.", of_batch},
        &multi_node_batch_normalization, Arg{"x"}, Arg{"gamma"}, Arg{"beta"}, Arg{"ranks"}, eps,
        none, no_var, Default{"decay", 0.9}, axis);
  visit(Op{"fixed_batch_normalization", "(N, C, ...), (C,), (C,), (C,), (C,) -> (N, C, ...)",
           "(x - mean) / sqrt(var + eps), times gamma, plus beta.", fixed},
        &fixed_batch_normalization, Arg{"x"}, Arg{"gamma"}, Arg{"beta"}, Arg{"mean"}, Arg{"var"},
        eps, axis);
  visit(
      Op{"group_normalization",
         "(N, C, ...), (C,), (C,) -> (N, C, ...)",
         "Mean 0 and variance 1 over groups of channels, times gamma, plus beta (Wu and He, 2018).",
         {.locality = Locality::batchwise, .inputs = 1, .flops = {.per_input = 7}}},
      &group_normalization, Arg{"x"}, Arg{"groups"}, Arg{"gamma"}, Arg{"beta"},
      Default{"eps", 1e-5});
  visit(Op{"normalize", "(...) -> (...)", "Vectors along axes, divided by their length plus eps.",
           along_axis(3)},
        &normalize, Arg{"x"}, Arg{"eps"}, Arg{"axis"});
}

}  // namespace renga
