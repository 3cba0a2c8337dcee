#include "ops/convolution/convolution.h"

#include <algorithm>

#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/selection.h"

namespace renga {
namespace convolution {
namespace {

Problem with_arithmetic(Problem problem) {
  problem.arithmetic = arithmetic_of(problem);
  return problem;
}

// Whether the bias has been added. Dtypes that no algorithm supports are computed in float32.
bool convolve(const Problem& given, const Array& bias) {
  const Problem problem = with_arithmetic(given);
  const Algorithm* const algorithm = select(problem);
  if (algorithm != nullptr) {
    const bool adds = bias.defined() && algorithm->adds_bias;
    algorithm->run(problem, {adds ? contiguous(cast(bias, Dtype::float32)) : Array()});
    return adds;
  }
  bool added = false;
  in_float32(problem, [&](const Problem& wide) { added = convolve(wide, bias); });
  return added;
}

// Reorders images a few samples at a time, which are read while they are in the cache: depthwise
// kernels take no longer than a copy to memory and back.
bool convolve_in_parts(const Problem& problem, const Array& bias) {
  constexpr std::int64_t kPart = 1 << 19;
  const Array &x = problem.x, &y = problem.y;
  const std::int64_t samples = x.shape(0), sample = x.size() / samples;
  const std::int64_t most = std::clamp<std::int64_t>(kPart / sample, 1, samples);
  const Axes last = channels_last_axes(4);
  const Array image =
      empty_in_order(slice_view(x, 0, 0, most).shape(), last, x.dtype(), x.device());
  bool added = false;
  for (std::int64_t begin = 0; begin < samples; begin += most) {
    const std::int64_t count = std::min(most, samples - begin);
    const Array part = slice_view(image, 0, 0, count), result = slice_view(y, 0, begin, count);
    copy(slice_view(x, 0, begin, count), part);
    added = convolve(problem.of(part, problem.W, result), bias);
  }
  return added;
}

bool is_forward_depthwise(const Problem& problem) {
  return problem.pass == Pass::forward && is_depthwise(problem) && has_common_images(problem);
}

void run_on_cpu(const Problem& problem, const Array& bias) {
  const bool reorders = is_forward_depthwise(problem) && !is_channels_last(problem.x);
  const bool added = reorders ? convolve_in_parts(problem, bias) : convolve(problem, bias);
  if (bias.defined() && !added) add_bias(problem.result(), bias);
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
