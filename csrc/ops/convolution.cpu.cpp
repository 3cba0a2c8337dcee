#include "ops/convolution.h"

#include <algorithm>
#include <array>

#include "devices/gil_release.h"
#include "ops/convolution_choice.cpu.h"
#include "ops/convolution_depthwise.cpu.h"
#include "ops/convolution_gemm.cpu.h"
#include "ops/convolution_onednn.cpu.h"
#include "ops/convolution_unfold.h"
#include "ops/convolution_weight_grad.cpu.h"
#include "ops/elementwise.h"
#include "ops/three_products.cpu.h"
#include "ops/winograd.cpu.h"
#include "tensor/views.h"

namespace renga {
namespace {

using Kernel = void (*)(const Array&, const Array&, const Array&, const Window&);
using DirectKernel = void (*)(const Array&, const Array&, const Array&, const Window&, Factors,
                              FilterForms*);
using BiasKernel = void (*)(const Array&, const Array&, const Array&, const Window&, Factors,
                            const Array&, FilterForms*);

// The kernels of a pass, and where among its operands x, W and y are.
struct Pass {
  ConvolutionPass pass;
  Kernel unfolded;
  DirectKernel direct;
  BiasKernel winograd, gemm, depthwise;
  int x, W, y;

  // Renga's kernels add the bias themselves.
  BiasKernel own(ConvolutionKernel kernel) const {
    switch (kernel) {
      case ConvolutionKernel::winograd:
        return winograd;
      case ConvolutionKernel::gemm:
        return gemm;
      case ConvolutionKernel::depthwise:
        return depthwise;
      default:
        return nullptr;
    }
  }
};

constexpr Pass kForward{ConvolutionPass::forward,
                        unfolded_forward,
                        onednn_forward,
                        winograd_forward,
                        gemm_forward,
                        depthwise_forward,
                        0,
                        1,
                        2};
constexpr Pass kInputGrad{ConvolutionPass::input_grad,
                          unfolded_input_grad,
                          onednn_input_grad,
                          winograd_input_grad,
                          gemm_input_grad,
                          depthwise_input_grad,
                          2,
                          1,
                          0};
constexpr Pass kWeightGrad{
    ConvolutionPass::weight_grad,
    unfolded_weight_grad,
    [](const Array& gy, const Array& x, const Array& gW, const Window& window, Factors factors,
       FilterForms*) { direct_weight_grad(gy, x, gW, window, factors); },
    [](const Array& gy, const Array& x, const Array& gW, const Window& window, Factors factors,
       const Array&, FilterForms*) { winograd_weight_grad(gy, x, gW, window, factors); },
    nullptr,
    depthwise_weight_grad,
    1,
    2,
    0};

// An image of one axis as one of one row.
Array with_rows(const Array& x) { return expand_view(x, 2); }

Window with_rows(Window window) {
  window.stride.insert(0, 1);
  window.pad.insert(0, 0);
  window.dilate.insert(0, 1);
  return window;
}

void multiply_three_times(const Pass& pass, const Array& a, const Array& b, const Array& to,
                          const Window& window) {
  const BfloatParts as(a), bs(b);
  const Array part = empty_like(to);
  const auto add = [&](const Array& left, const Array& right) {
    pass.direct(left, right, part, window, Factors::bfloat16, nullptr);
    elementwise_kernels.on(to.device()).binary(Binary::add, 0, to, part, to);
  };
  pass.direct(as.low, bs.high, to, window, Factors::bfloat16, nullptr);
  add(as.high, bs.low);
  add(as.high, bs.high);
}

// Whether the numbers of a problem are small enough for kernels that multiply them as 32-bit ints.
bool has_small_numbers(const Array& x, const Array& y, const Window& window) {
  constexpr std::int64_t kLargestOption = 1 << 15, kLargestExtent = 1 << 30;
  const auto within = [](const std::int64_t* begin, const std::int64_t* end, std::int64_t largest) {
    return std::all_of(begin, end, [largest](std::int64_t n) { return n <= largest; });
  };
  for (const Dims* option : {&window.stride, &window.pad, &window.dilate}) {
    if (!within(option->begin(), option->end(), kLargestOption)) return false;
  }
  return within(x.shape().begin() + 2, x.shape().end(), kLargestExtent) &&
         within(y.shape().begin() + 2, y.shape().end(), kLargestExtent);
}

// Returns whether it has added the bias.
bool convolve(const Pass& pass, const Array& a, const Array& b, const Array& to,
              const Window& window, const Array& bias, FilterForms* forms);

// Through float32, for dtypes that a kernel does not know.
bool convolve_widened(const Pass& pass, const Array& a, const Array& b, const Array& to,
                      const Window& window, const Array& bias, FilterForms* forms) {
  const Array wide = to.dtype() == Dtype::float32 ? to : empty_like(to, Dtype::float32);
  const bool added =
      convolve(pass, cast(a, Dtype::float32), cast(b, Dtype::float32), wide, window, bias, forms);
  if (to.dtype() != Dtype::float32) copy(wide, to);
  return added;
}

bool convolve(const Pass& pass, const Array& a, const Array& b, const Array& to,
              const Window& window, const Array& bias, FilterForms* forms) {
  if (to.ndim() == 3) {
    return convolve(pass, with_rows(a), with_rows(b), with_rows(to), with_rows(window), bias,
                    forms);
  }
  const std::array operands{&a, &b, &to};
  const Array &x = *operands[pass.x], &W = *operands[pass.W], &y = *operands[pass.y];
  const bool unfolded = to.ndim() > kMostOnednnAxes || !has_small_numbers(x, y, window);
  if (x.dtype() == Dtype::float64 || (x.dtype() == Dtype::float32 && unfolded)) {
    pass.unfolded(a, b, to, window);
    return false;
  }
  if (x.dtype() == Dtype::float16 || unfolded) {
    return convolve_widened(pass, a, b, to, window, bias, forms);
  }
  const ConvolutionChoice choice = choose_convolution(pass.pass, x, W, y, window);
  if (const BiasKernel kernel = pass.own(choice.kernel)) {
    kernel(a, b, to, window, choice.factors, bias, forms);
    return true;
  }
  if (choice.three_products) {
    multiply_three_times(pass, a, b, to, window);
    return false;
  }
  if (!onednn_convolves(x.dtype())) return convolve_widened(pass, a, b, to, window, bias, forms);
  pass.direct(a, b, to, window, choice.factors, forms);
  return false;
}

void run(const Pass& pass, const Array& a, const Array& b, const Array& to, const Window& window,
         const Array& bias = {}, FilterForms* forms = nullptr) {
  const GilRelease work;
  if (to.size() == 0) return;
  bool added = false;
  if (a.size() == 0 || b.size() == 0) {
    fill(to, 0);
  } else {
    added = convolve(pass, a, b, to, window, bias, forms);
  }
  if (bias.defined() && !added) add_bias(to, bias);
}

void forward(const Array& x, const Array& W, const Array& y, const Window& window, const Array& b,
             FilterForms* forms) {
  run(kForward, x, W, y, window, b, forms);
}

void input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window,
                const Array& b, FilterForms* forms) {
  run(kInputGrad, gy, W, gx, window, b, forms);
}

void weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window) {
  run(kWeightGrad, gy, x, gW, window);
}

[[maybe_unused]] const bool registered =
    convolution_kernels.add(0, {forward, input_grad, weight_grad});

}  // namespace
}  // namespace renga
