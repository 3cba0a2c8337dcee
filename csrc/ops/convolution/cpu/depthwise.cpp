#include "ops/convolution/cpu/depthwise.h"

#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/depthwise_gather.h"
#include "ops/convolution/cpu/depthwise_weight_grad.h"

namespace renga {
namespace {

using depthwise::GatherKernel;
using depthwise::PackedFilters;
using depthwise::WeightGradKernel;

// Forward and input gradient.
void gather(const Problem& problem, const Array& bias) {
  const bool forward = problem.pass == Pass::forward;
  const std::int64_t stride = problem.window.stride[1];
  const IndexMap map = forward ? map_y_to_x(problem) : map_x_to_y(problem);
  const std::int64_t period = forward ? 1 : stride, step = forward ? stride : 1;
  const ChannelsLastOutput output(problem.result());
  const Array input = dense_channels_last(problem.first());
  const PackedFilters filters(problem.W);
  const Array initial = bias.defined() ? contiguous(cast(bias, Dtype::float32))
                                       : zeros({problem.result().shape(1)}, Dtype::float32);
  if (input.dtype() == Dtype::bfloat16) {
    GatherKernel<bfloat16>(input, filters, map, period, step, output.dense(), initial).run();
  } else {
    GatherKernel<float>(input, filters, map, period, step, output.dense(), initial).run();
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

}  // namespace

bool depthwise_supports(const Shape& W, const Window& window) {
  return window.groups > 1 && W[0] == window.groups && W[1] == 1;
}

void depthwise_convolve(const Problem& problem, const Array& bias) {
  problem.pass == Pass::weight_grad ? weight_grad(problem) : gather(problem, bias);
}

}  // namespace renga
