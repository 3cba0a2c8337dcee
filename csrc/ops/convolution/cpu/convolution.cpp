#include "ops/convolution/convolution.h"

#include <algorithm>

#include "devices/gil_release.h"
#include "ops/convolution/cpu/algorithm_selection.h"
#include "ops/convolution/cpu/depthwise.h"
#include "ops/convolution/cpu/direct_weight_grad.h"
#include "ops/convolution/cpu/gemm.h"
#include "ops/convolution/cpu/im2col.h"
#include "ops/convolution/cpu/onednn.h"
#include "ops/convolution/cpu/tiles/tile_convolution.h"
#include "ops/convolution/cpu/winograd/winograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/cpu/bfloat16_matmul.h"
#include "simd/tile_unit.h"
#include "tensor/views.h"

namespace renga {
namespace {

// An image of one axis as one of one row.
Array with_rows(const Array& x) { return expand_view(x, 2); }

Window with_rows(Window window) {
  window.stride.insert(0, 1);
  window.pad.insert(0, 0);
  window.dilate.insert(0, 1);
  return window;
}

void convolve_direct(const Problem& problem, ComputeType compute_type, PackedWeightCache* cache) {
  if (compute_type == ComputeType::bfloat16 && simd::has_tiles() && tiles_support(problem)) {
    return problem.pass == Pass::weight_grad ? tile_weight_grad(problem)
                                             : tile_convolve(problem, {}, cache);
  }
  if (problem.pass == Pass::weight_grad) return direct_weight_grad(problem, compute_type);
  onednn_convolve(problem, compute_type, cache);
}

void convolve_bf16x3(const Problem& problem) {
  const Bfloat16Split a(problem.first()), b(problem.second());
  const Array &result = problem.result(), term = empty_like(result);
  const auto convolve = [&](const Array& left, const Array& right, const Array& to) {
    convolve_direct(Problem::of(problem.pass, left, right, to, problem.window),
                    ComputeType::bfloat16, nullptr);
  };
  const auto add = [&](const Array& left, const Array& right) {
    convolve(left, right, term);
    elementwise_kernels.on(result.device()).binary(Binary::add, 0, result, term, result);
  };
  convolve(a.low, b.high, result);
  add(a.high, b.low);
  add(a.high, b.high);
}

// Whether the extents and options of a problem are small enough for kernels that multiply them as
// 32-bit ints.
bool fits_32_bits(const Problem& problem) {
  constexpr std::int64_t kLargestOption = 1 << 15, kLargestExtent = 1 << 30;
  const auto within = [](const std::int64_t* begin, const std::int64_t* end, std::int64_t largest) {
    return std::all_of(begin, end, [largest](std::int64_t n) { return n <= largest; });
  };
  const Window& window = problem.window;
  for (const Dims* option : {&window.stride, &window.pad, &window.dilate}) {
    if (!within(option->begin(), option->end(), kLargestOption)) return false;
  }
  const Shape &x = problem.x.shape(), &y = problem.y.shape();
  return within(x.begin() + 2, x.end(), kLargestExtent) &&
         within(y.begin() + 2, y.end(), kLargestExtent);
}

// Returns whether it has added the bias.
bool convolve(const Problem& problem, const Array& bias, PackedWeightCache* cache);

// For dtypes that an algorithm does not support.
bool convolve_in_float32(const Problem& problem, const Array& bias, PackedWeightCache* cache) {
  const Array& result = problem.result();
  const Array wide = result.dtype() == Dtype::float32 ? result : empty_like(result, Dtype::float32);
  const Array a = cast(problem.first(), Dtype::float32), b = cast(problem.second(), Dtype::float32);
  const bool added = convolve(Problem::of(problem.pass, a, b, wide, problem.window), bias, cache);
  if (result.dtype() != Dtype::float32) copy(wide, result);
  return added;
}

bool convolve_with_rows(const Problem& problem, const Array& bias, PackedWeightCache* cache) {
  const Array x = with_rows(problem.x), W = with_rows(problem.W), y = with_rows(problem.y);
  const Window window = with_rows(problem.window);
  return convolve({problem.pass, x, W, y, window}, bias, cache);
}

bool convolve(const Problem& problem, const Array& bias, PackedWeightCache* cache) {
  const Array& x = problem.x;
  if (x.ndim() == 3) return convolve_with_rows(problem, bias, cache);
  const bool needs_im2col = x.ndim() > kMostOnednnAxes || !fits_32_bits(problem);
  if (x.dtype() == Dtype::float64 || (x.dtype() == Dtype::float32 && needs_im2col)) {
    im2col_convolve(problem);
    return false;
  }
  if (x.dtype() == Dtype::float16 || needs_im2col) {
    return convolve_in_float32(problem, bias, cache);
  }
  const SelectedAlgorithm selected = select_algorithm(problem);
  switch (selected.algorithm) {
    case ConvolutionAlgorithm::winograd:
      if (problem.pass == Pass::weight_grad) {
        winograd_weight_grad(problem, selected.compute_type, false);
        return false;
      }
      winograd_convolve(problem, selected.compute_type, bias, cache);
      return true;
    case ConvolutionAlgorithm::gemm:
      gemm_convolve(problem, bias);
      return true;
    case ConvolutionAlgorithm::tiles:
      if (problem.pass == Pass::weight_grad) {
        tile_weight_grad(problem);
        return false;
      }
      tile_convolve(problem, bias, cache);
      return true;
    case ConvolutionAlgorithm::depthwise:
      depthwise_convolve(problem, bias);
      return problem.pass != Pass::weight_grad;
    default:
      break;
  }
  if (selected.bf16x3) {
    convolve_bf16x3(problem);
    return false;
  }
  if (!onednn_supports(x.dtype())) return convolve_in_float32(problem, bias, cache);
  convolve_direct(problem, selected.compute_type, cache);
  return false;
}

void run(const Problem& problem, const Array& bias, PackedWeightCache* cache) {
  const GilRelease work;
  const Array& result = problem.result();
  if (result.size() == 0) return;
  bool added = false;
  if (problem.first().size() == 0 || problem.second().size() == 0) {
    fill(result, 0);
  } else {
    added = convolve(problem, bias, cache);
  }
  if (bias.defined() && !added) add_bias(result, bias);
}

void forward(const Array& x, const Array& W, const Array& y, const Window& window, const Array& b,
             PackedWeightCache* cache) {
  run({Pass::forward, x, W, y, window}, b, cache);
}

void input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window,
                const Array& b, PackedWeightCache* cache) {
  run({Pass::input_grad, gx, W, gy, window}, b, cache);
}

void weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window) {
  run({Pass::weight_grad, x, gW, gy, window}, {}, nullptr);
}

bool add_weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window) {
  const Problem problem{Pass::weight_grad, x, gW, gy, window};
  const bool narrow = x.dtype() == Dtype::float32 || x.dtype() == Dtype::bfloat16;
  if (x.ndim() != 4 || !narrow || gy.size() == 0 || gW.size() == 0) return false;
  const GilRelease work;
  if (!fits_32_bits(problem)) return false;
  const SelectedAlgorithm selected = select_algorithm(problem);
  if (selected.algorithm != ConvolutionAlgorithm::winograd) return false;
  winograd_weight_grad(problem, selected.compute_type, true);
  return true;
}

[[maybe_unused]] const bool registered =
    convolution_kernels.add(0, {forward, input_grad, weight_grad, true, add_weight_grad});

}  // namespace
}  // namespace renga
