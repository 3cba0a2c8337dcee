#include "ops/convolution_choice.cpu.h"

#include <algorithm>
#include <atomic>
#include <sstream>
#include <string>

#include "devices/cpu/onednn.h"
#include "ops/kernel_choices.h"
#include "ops/panel_product.cpu.h"
#include "ops/three_products.cpu.h"
#include "ops/winograd.cpu.h"

namespace renga {
namespace {

std::atomic<ConvolutionKernel> chosen{ConvolutionKernel::automatic};

enum class Multiplication { direct, direct_into_filters, winograd };

// Of bfloat16 numbers AVX-512 multiplies twice as many at a time as of float32, and AMX eight times
// as many, for which Winograd's kernels have no use and oneDNN's gradients of filters little
// (measured: 36 to 400 GFLOP/s at images of up to 8x8, where float32 had 163).
double cost_of(Multiplication kind, Factors factors) {
  if (factors == Factors::float32) return 1;
  return kind == Multiplication::direct && onednn::has_amx() ? 0.125 : 0.5;
}

// Taps that fall on the image, summed over all positions along an axis.
std::int64_t taps(const Array& x, const Array& W, const Array& y, const Window& window, int axis) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < y.shape(2 + axis); ++i) {
    const std::int64_t first = i * window.stride[axis] - window.pad[axis];
    count += std::max<std::int64_t>(0, std::min(first + W.shape(2 + axis), x.shape(2 + axis)) -
                                           std::max<std::int64_t>(first, 0));
  }
  return count;
}

// What takes as long as one multiplication of float32 numbers is 1. Both kernels multiply at the
// machine's speed, direct ones without the taps that fall on padding, Winograd's whole groups of
// tiles. Before, direct ones reorder the filters, each tap of which costs as much as `reorder`
// multiplications; transforms cost `image` for each transformed element of an image, and `filter`
// for each of a filter (docs/performance.md has the measurements).
double direct_cost(const Array& x, const Array& W, const Array& y, const Window& window,
                   Factors factors, bool into_filters) {
  constexpr double reorder = 24;
  const auto kind = into_filters ? Multiplication::direct_into_filters : Multiplication::direct;
  const auto taps_met =
      static_cast<double>(y.shape(0) * taps(x, W, y, window, 0) * taps(x, W, y, window, 1));
  const auto pairs = static_cast<double>(W.shape(0) * W.shape(1));
  return pairs * cost_of(kind, factors) * taps_met + reorder * static_cast<double>(W.size());
}

double winograd_cost(const Array& x, const Array& W, const Array& y, const Window& window,
                     Factors factors) {
  constexpr double image = 14, filter = 5;
  const WinogradScheme scheme = winograd_scheme(x.shape(), window, factors);
  const std::int64_t covering = y.shape(0) * ((y.shape(2) + scheme.rows - 1) / scheme.rows) *
                                ((y.shape(3) + scheme.columns - 1) / scheme.columns);
  const auto tiles = static_cast<double>((covering + kPanelRows - 1) / kPanelRows * kPanelRows);
  const auto pairs = static_cast<double>(W.shape(0) * W.shape(1));
  const auto channels = static_cast<double>(W.shape(0) + W.shape(1));
  return static_cast<double>(scheme.points) *
         (tiles * (cost_of(Multiplication::winograd, factors) * pairs + image * channels) +
          filter * pairs);
}

// What the choice depends on, in words. The extents of y do not follow from the rest (cover_all);
// dilated and grouped convolutions have no choice.
std::string problem(const char* pass, const Array& x, const Array& W, const Array& y,
                    const Window& window, Factors factors) {
  std::ostringstream text;
  text << "convolution " << pass << ", x " << x.shape() << ", W " << W.shape() << ", y "
       << y.shape() << ", stride " << window.stride << ", pad " << window.pad << ", products of "
       << (factors == Factors::bfloat16 ? "bfloat16" : "float32");
  return text.str();
}

Factors factors_for(const Array& x) {
  const bool coarse = x.dtype() == Dtype::bfloat16 || compute_precision() == Precision::medium;
  return coarse && onednn::has_bfloat16_products() ? Factors::bfloat16 : Factors::float32;
}

}  // namespace

void use_convolution_kernel(ConvolutionKernel kernel) { chosen = kernel; }

ConvolutionChoice choose_convolution(const char* pass, const Array& x, const Array& W,
                                     const Array& y, const Window& window, bool into_filters) {
  const ConvolutionKernel kernel = chosen;
  const Factors factors = factors_for(x);
  if (x.dtype() == Dtype::float32 && compute_precision() == Precision::high &&
      three_products_pay()) {
    return {false, Factors::bfloat16, true};
  }
  if (kernel == ConvolutionKernel::direct || x.ndim() != 4 ||
      !winograd_convolves(W.shape(), window)) {
    return {false, factors};
  }
  if (kernel == ConvolutionKernel::winograd) return {true, factors};
  const auto by_shapes = [&] {
    const bool pays = winograd_cost(x, W, y, window, factors) <
                      direct_cost(x, W, y, window, factors, into_filters);
    return pays ? "winograd" : "direct";
  };
  return {chosen_kernel(problem(pass, x, W, y, window, factors), by_shapes) == "winograd", factors};
}

}  // namespace renga
