#include "ops/convolution/convolution.h"

#include <utility>

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

// Returns what it has left of the epilogue. Dtypes that no algorithm supports are computed in
// float32.
Epilogue convolve(const Problem& given, Epilogue epilogue) {
  const Problem problem = with_arithmetic(given);
  // Only this one reads planes of channels as they are.
  const bool has_planes = is_forward_depthwise(problem) && !is_channels_last(problem.x);
  const Algorithm* const algorithm =
      has_planes && kDepthwise.supports(problem) ? &kDepthwise : select(problem);
  if (algorithm == nullptr) {
    in_float32(problem,
               [&](const Problem& wide) { epilogue.bias = convolve(wide, {epilogue.bias}).bias; });
    return epilogue;
  }
  Epilogue now;
  if (algorithm->adds_bias && epilogue.bias.defined()) {
    now.bias = contiguous(cast(std::exchange(epilogue.bias, Array()), problem.W.dtype()));
  }
  if (algorithm->has_parts && !has_planes && !epilogue.bias.defined()) {
    std::swap(now.pass, epilogue.pass);
  }
  algorithm->run(problem, now);
  return epilogue;
}

void run_on_cpu(const Problem& problem, const Epilogue& epilogue) {
  finish_image(problem.result(), convolve(problem, epilogue));
}

bool add_weight_grad(const Problem& given) {
  const Problem problem = with_arithmetic(given);
  const Algorithm* const algorithm = select(problem);
  if (algorithm == nullptr || !algorithm->adds_weight_grad) return false;
  algorithm->run(problem, {.accumulates = true});
  return true;
}

bool prefers_channels_last(const Problem& problem) {
  return problem.x.dtype() == Dtype::float64 ||
         (has_common_images(problem) && !is_forward_depthwise(problem));
}

}  // namespace
}  // namespace convolution

[[maybe_unused]] const bool registered =
    convolution_kernels.add(0, {.run = convolution::run_on_cpu,
                                .prefers_channels_last = convolution::prefers_channels_last,
                                .add_weight_grad = convolution::add_weight_grad,
                                .has_parts = true});

}  // namespace renga
