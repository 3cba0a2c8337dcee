// Convolutions on CUDA: by cuDNN on channels-last arrays where it has an engine, else directly.
#include "ops/convolution/convolution.h"

#include <array>

#include "devices/cuda/cuda.h"
#include "ops/convolution/cuda/direct.h"
#include "ops/convolution/cuda/plan.h"
#include "ops/shape/image.h"
#include "tensor/views.h"

namespace renga {
namespace convolution {
namespace {

// Views, such as a part of a batch, may start anywhere.
bool suits_plans(const Array& x) {
  return channels_last_view(x).is_contiguous() &&
         reinterpret_cast<std::uintptr_t>(x.data()) % kPlanAlignment == 0;
}

// Whether cuDNN may have an engine.
bool plan_supports(const Problem& problem) {
  return problem.x.dtype() != Dtype::float64 && problem.x.ndim() <= 5;
}

bool supports_all(const Problem&) { return true; }

// Computes in float32, or in float64 if the result is.
void direct(const Problem& problem, const Epilogue&) {
  if (problem.result().dtype() == Dtype::float64) return run_direct(problem);
  in_float32(problem, run_direct);
}

// Arrays become channels-last and of the images' dtype. So float32 weight gradients of bfloat16
// images are rounded to bfloat16 once, after sums in float32, as PyTorch's are: cuDNN's engines for
// float32 results took 16 times as long on an H200.
void plan(const Problem& problem, const Epilogue& epilogue) {
  const Array& result = problem.result();
  const auto prepare = [&](const Array& x) {
    const Dtype dtype = problem.x.dtype();
    if (x.dtype() == dtype && suits_plans(x)) return x;
    const Array y = empty_in_order(x.shape(), channels_last_axes(x.ndim()), dtype, x.device());
    if (&x != &result) copy(x, y);
    return y;
  };
  const Array a = prepare(problem.first()), b = prepare(problem.second()), to = prepare(result);
  if (!run_plan(problem.of(a, b, to))) return direct(problem, epilogue);
  if (to.data() != result.data()) copy(to, result);
}

// The first that supports a problem runs it.
constexpr std::array kAlgorithms{
    Algorithm{.name = "cudnn", .supports = plan_supports, .run = plan},
    Algorithm{.name = "direct", .supports = supports_all, .run = direct},
};

void run_on_cuda(const Problem& problem, const Epilogue& epilogue) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.supports(problem)) {
      algorithm.run(problem, {});
      break;
    }
  }
  finish_image(problem.result(), epilogue);
}

[[maybe_unused]] const bool registered =
    convolution_kernels.add(cuda::number(), {run_on_cuda, has_common_images});

}  // namespace
}  // namespace convolution
}  // namespace renga
