// Depthwise convolution: each channel has a filter of its own. There are only as many
// multiplications per pixel as kernel offsets, so the time is that of reading and writing each
// pixel once. Products and sums are in float32. Results do not depend on the number of threads.
#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/cost.h"
#include "ops/convolution/cpu/depthwise_gather.h"
#include "ops/convolution/cpu/depthwise_planes.h"
#include "ops/convolution/cpu/depthwise_weight_grad.h"
#include "ops/convolution/cpu/selection.h"

namespace renga::convolution {
namespace {

using depthwise::ColumnPattern;
using depthwise::GatherKernel;
using depthwise::PackedFilters;
using depthwise::PlaneKernel;
using depthwise::WeightGradKernel;

// One number per channel, and zeros up to a whole block of channels.
Array initial_sums(const Problem& problem, const Array& bias) {
  const std::int64_t channels = problem.result().shape(1);
  const Array sums = zeros({round_up(channels, PackedFilters::kBlock)}, Dtype::float32);
  if (bias.defined()) copy(bias, slice_view(sums, 0, 0, channels));
  return sums;
}

void convolve_planes(const Problem& problem, const Array& bias) {
  const ChannelsLastOutput output(problem.y);
  const Array x = contiguous(problem.x);
  const PackedFilters filters(problem.W);
  const Array initial = initial_sums(problem, bias);
  if (x.dtype() == Dtype::bfloat16) {
    PlaneKernel<bfloat16>(problem, x, filters, initial, output.dense()).run();
  } else {
    PlaneKernel<float>(problem, x, filters, initial, output.dense()).run();
  }
  output.finish();
}

ColumnPattern pattern_of(const Problem& problem) {
  const Window& window = problem.window;
  const std::int64_t stride = window.stride[1], pad = window.pad[1];
  ColumnPattern pattern{1, stride};
  const bool forward = problem.pass == Pass::forward;
  if (!forward) pattern = {.period = stride, .step = 1, .is_reversed = true};
  if (window.dilate[1] == 1 && pattern.period == 1) {
    pattern.first = forward ? -pad : pad - (problem.W.shape(3) - 1);
  }
  return pattern;
}

// Forward and input gradient.
void gather(const Problem& problem, const Epilogue& epilogue) {
  const bool forward = problem.pass == Pass::forward;
  if (forward && !is_channels_last(problem.x)) return convolve_planes(problem, epilogue.bias);
  const IndexMap map = forward ? map_y_to_x(problem) : map_x_to_y(problem);
  const ColumnPattern pattern = pattern_of(problem);
  const ChannelsLastOutput output(problem.result());
  const Array input = dense_channels_last(problem.first());
  const PackedFilters filters(problem.W);
  const Array initial = initial_sums(problem, epilogue.bias);
  if (input.dtype() == Dtype::bfloat16) {
    GatherKernel<bfloat16>(input, filters, map, pattern, output.dense(), initial)
        .run(epilogue.pass);
  } else {
    GatherKernel<float>(input, filters, map, pattern, output.dense(), initial).run(epilogue.pass);
  }
  output.finish();
}

void weight_grad(const Problem& problem) {
  const IndexMap map = map_y_to_x(problem);
  const Array x = dense_channels_last(problem.x), gy = dense_channels_last(problem.y);
  const Array sums = x.dtype() == Dtype::bfloat16
                         ? WeightGradKernel<bfloat16>(gy, x, map, problem.window).run()
                         : WeightGradKernel<float>(gy, x, map, problem.window).run();
  copy(transpose_view(sums, {1, 0}), reshape_view(problem.W, {sums.shape(1), sums.shape(0)}));
}

bool supports(const Problem& problem) { return is_common(problem) && is_depthwise(problem); }

// For large kernels oneDNN is faster than an inner loop that loads pixels again for each kernel
// offset; its depthwise weight gradient takes five times as long as renga's.
double cost(const Problem& problem) {
  const bool is_fastest = problem.pass == Pass::weight_grad || problem.W.shape(3) <= 3 ||
                          depthwise::is_adjoining(pattern_of(problem), problem.W.shape(3));
  return is_fastest ? no_cost(problem) : highest_cost(problem);
}

void run(const Problem& problem, const Epilogue& epilogue) {
  problem.pass == Pass::weight_grad ? weight_grad(problem) : gather(problem, epilogue);
}

}  // namespace

constinit const Algorithm kDepthwise{.name = "depthwise",
                                     .supports = supports,
                                     .cost = cost,
                                     .run = run,
                                     .adds_bias = true,
                                     .has_parts = true};

}  // namespace renga::convolution
