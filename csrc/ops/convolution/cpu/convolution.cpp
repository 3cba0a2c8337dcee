#include "ops/convolution/convolution.h"

#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/selection.h"

namespace renga {
namespace convolution {
namespace {

Problem with_arithmetic(Problem problem) {
  problem.arithmetic = arithmetic_of(problem);
  return problem;
}

bool is_forward_depthwise(const Problem& problem) {
  return problem.pass == Pass::forward && is_depthwise(problem) && has_common_images(problem);
}

// Whether the bias has been added. Dtypes that no algorithm supports are computed in float32.
bool convolve(const Problem& given, const Array& bias) {
  const Problem problem = with_arithmetic(given);
  // Only this one reads planes of channels as they are.
  const bool has_planes = is_forward_depthwise(problem) && !is_channels_last(problem.x);
  const Algorithm* const algorithm =
      has_planes && kDepthwise.supports(problem) ? &kDepthwise : select(problem);
  if (algorithm != nullptr) {
    const bool adds = bias.defined() && algorithm->adds_bias;
    algorithm->run(problem, {adds ? contiguous(cast(bias, Dtype::float32)) : Array()});
    return adds;
  }
  bool added = false;
  in_float32(problem, [&](const Problem& wide) { added = convolve(wide, bias); });
  return added;
}

void run_on_cpu(const Problem& problem, const Array& bias) {
  if (!convolve(problem, bias) && bias.defined()) add_bias(problem.result(), bias);
}

bool add_weight_grad(const Problem& given) {
  const Problem problem = with_arithmetic(given);
  const Algorithm* const algorithm = select(problem);
  if (algorithm == nullptr || !algorithm->adds_weight_grad) return false;
  algorithm->run(problem, {.accumulates = true});
  return true;
}

bool prefers_channels_last(const Problem& problem) {
  return has_common_images(problem) && !is_forward_depthwise(problem);
}

}  // namespace
}  // namespace convolution

[[maybe_unused]] const bool registered = convolution_kernels.add(
    0, {convolution::run_on_cpu, convolution::prefers_channels_last, convolution::add_weight_grad});

}  // namespace renga
