// Convolutions on CUDA: by cuDNN on channels-last arrays where it has an engine, else directly.
#include "ops/convolution/convolution.h"

#include "devices/cuda/cuda.h"
#include "devices/gil_release.h"
#include "ops/convolution/cuda/direct.h"
#include "ops/convolution/cuda/plan.h"
#include "ops/shape/image.h"
#include "tensor/views.h"

namespace renga {
namespace {

constexpr int kLeastAxes = 4, kMostAxes = 5;  // of cuDNN's images

// Views, such as a part of a batch, may start anywhere.
bool suits_plans(const Array& x) {
  return channels_last_view(x).is_contiguous() &&
         reinterpret_cast<std::uintptr_t>(x.data()) % kPlanAlignment == 0;
}

Array empty_channels_last(const Array& x, Dtype dtype) {
  return empty_in_order(x.shape(), channels_last_axes(x.ndim()), dtype, x.device());
}

// x itself where it is that already and of the dtype.
Array channels_last(const Array& x, Dtype dtype) {
  if (x.dtype() == dtype && suits_plans(x)) return x;
  const Array y = empty_channels_last(x, dtype);
  copy(x, y);
  return y;
}

// Images of one axis of pixels get one of rows.
Array with_rows(const Array& x) { return x.ndim() < kLeastAxes ? expand_view(x, 2) : x; }

Window with_rows(Window window) {
  if (window.pad.size() + 2 < kLeastAxes) {
    window.pad.insert(0, 0);
    window.stride.insert(0, 1);
    window.dilate.insert(0, 1);
  }
  return window;
}

// Which of the three arrays is the result.
Array ConvolutionProblem::*result_of(ConvolutionPass pass) {
  if (pass == ConvolutionPass::forward) return &ConvolutionProblem::y;
  return pass == ConvolutionPass::input_grad ? &ConvolutionProblem::x : &ConvolutionProblem::W;
}

// Operands and the result become channels-last of one dtype.
void prepare(ConvolutionProblem& p, Dtype dtype) {
  for (Array* array : {&p.x, &p.W, &p.y}) {
    if (array != &(p.*result_of(p.pass))) {
      *array = channels_last(*array, dtype);
    } else if (array->dtype() != dtype || !suits_plans(*array)) {
      *array = empty_channels_last(*array, dtype);
    }
  }
}

// Float32 weight gradients of bfloat16 images are rounded to bfloat16 once, after sums in float32,
// as PyTorch's are: cuDNN's engines for float32 results took 16 times as long on an H200.
bool convolve_by_plan(const ConvolutionProblem& given, Dtype images) {
  const auto which = result_of(given.pass);
  const Array& result = given.*which;
  ConvolutionProblem p = given;
  prepare(p, images);
  if (!run_plan(p)) return false;
  if ((p.*which).data() != result.data()) copy(p.*which, result);
  return true;
}

void convolve_directly(ConvolutionProblem p) {
  const auto which = result_of(p.pass);
  const Array result = p.*which;
  const Dtype dtype = result.dtype() == Dtype::float64 ? Dtype::float64 : Dtype::float32;
  for (Array* array : {&p.x, &p.W, &p.y}) {
    if (array->dtype() == dtype) continue;
    *array = array == &(p.*which) ? empty_like(*array, dtype) : cast(*array, dtype);
  }
  run_direct(p);
  if ((p.*which).data() != result.data()) copy(p.*which, result);
}

void run(ConvolutionPass pass, const Array& x, const Array& W, const Array& y, const Window& window,
         const Array& bias) {
  const GilRelease work;
  ConvolutionProblem p{pass, with_rows(x), with_rows(W), with_rows(y), with_rows(window)};
  const Array& result = p.*result_of(pass);
  if (result.size() == 0) return;
  if (x.size() == 0 || W.size() == 0 || y.size() == 0) {
    fill(result, 0);
  } else {
    const Dtype images = p.x.dtype();
    const bool has_engines = images != Dtype::float64 && p.x.ndim() <= kMostAxes;
    if (!has_engines || !convolve_by_plan(p, images)) convolve_directly(p);
  }
  if (bias.defined()) add_bias(pass == ConvolutionPass::forward ? y : x, bias);
}

void forward(const Array& x, const Array& W, const Array& y, const Window& window, const Array& b,
             PackedWeightCache*) {
  run(ConvolutionPass::forward, x, W, y, window, b);
}

void input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window,
                const Array& b, PackedWeightCache*) {
  run(ConvolutionPass::input_grad, gx, W, gy, window, b);
}

void weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window) {
  run(ConvolutionPass::weight_grad, x, gW, gy, window, {});
}

[[maybe_unused]] const bool registered =
    convolution_kernels.add(cuda::number(), {forward, input_grad, weight_grad, true});

}  // namespace
}  // namespace renga
