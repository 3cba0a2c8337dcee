#include "ops/convolution/cpu/algorithm_selection.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <sstream>
#include <string>

#include "ops/convolution/algorithm_cache.h"
#include "ops/convolution/cpu/depthwise.h"
#include "ops/convolution/cpu/gemm.h"
#include "ops/convolution/cpu/winograd/winograd.h"
#include "ops/matmul/cpu/bf16x3.h"
#include "ops/matmul/cpu/packed_gemm.h"
#include "simd/cpu_features.h"

namespace renga {
namespace {

std::atomic<ConvolutionKernel> chosen{ConvolutionKernel::automatic};

using Kernel = ConvolutionKernel;
using Pass = ConvolutionPass;

constexpr std::array kKernels{"auto", "direct", "winograd", "gemm", "depthwise"};
constexpr std::array kPasses{"forward", "input gradient", "weight gradient"};

const char* name_of(Kernel kernel) { return kKernels[static_cast<std::size_t>(kernel)]; }

// Of bfloat16 numbers AVX-512 multiplies twice as many at a time as of float32, and AMX eight times
// as many, for which Winograd's kernels have no use and oneDNN's gradients of filters little
// (measured: 36 to 400 GFLOP/s at images of up to 8x8, where float32 had 163).
double cost_of(Kernel kernel, Pass pass, Factors factors) {
  if (factors == Factors::float32 || kernel == Kernel::gemm) return 1;
  const bool tiles = kernel == Kernel::direct && pass != Pass::weight_grad && simd::has_amx();
  return tiles ? 0.125 : 0.5;
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

// A pass of a convolution, and what its kernels cost by its shapes. What takes as long as one
// multiplication of float32 numbers is 1; all kernels multiply at the machine's speed
// (docs/performance.md has the measurements).
struct Problem {
  Pass pass;
  const Array &x, &W, &y;
  const Window& window;
  Factors factors;

  // Without the taps that fall on padding. The channels of an image that is written come in vectors
  // of 16. Before, filters are reordered, each tap of which costs as much as `reorder`.
  double direct_cost() const {
    constexpr double reorder = 24;
    constexpr std::int64_t vector = 16;
    const std::int64_t full =
        pass == Pass::weight_grad ? written() : (written() + vector - 1) / vector * vector;
    const auto taps_met =
        static_cast<double>(y.shape(0) * taps(x, W, y, window, 0) * taps(x, W, y, window, 1));
    return static_cast<double>(full * (pairs() / written())) *
               cost_of(Kernel::direct, pass, factors) * taps_met +
           reorder * static_cast<double>(W.size());
  }

  // Whole groups of tiles. Transforms cost `image` for each transformed element of an image, and
  // `filter` for each of a filter.
  double winograd_cost() const {
    constexpr double image = 14, filter = 5;
    const WinogradScheme scheme = winograd_scheme(x.shape(), window, factors);
    const std::int64_t covering = y.shape(0) * ((y.shape(2) + scheme.rows - 1) / scheme.rows) *
                                  ((y.shape(3) + scheme.columns - 1) / scheme.columns);
    const auto tiles = static_cast<double>((covering + kPanelRows - 1) / kPanelRows * kPanelRows);
    const auto channels = static_cast<double>(W.shape(0) + W.shape(1));
    const auto all = static_cast<double>(pairs());
    return static_cast<double>(scheme.points) *
           (tiles * (cost_of(Kernel::winograd, pass, factors) * all + image * channels) +
            filter * all);
  }

  // All taps of every row, in whole panels; `fold` for each that a pixel of the result adds up.
  double gemm_cost() const {
    constexpr double fold = 20;
    const Array &factor = pass == Pass::forward ? x : y, &result = pass == Pass::forward ? y : x;
    const std::int64_t columns = (factor.shape(3) + kPanelRows - 1) / kPanelRows * kPanelRows;
    const std::int64_t read = (pairs() / written() + kPanel - 1) / kPanel * kPanel;
    const std::int64_t width = gemm_width(written(), W.shape(2) * W.shape(3));
    const auto rows = static_cast<double>(factor.shape(0) * factor.shape(2));
    const std::int64_t met = result.shape(0) * taps(x, W, y, window, 0) * taps(x, W, y, window, 1);
    return rows * static_cast<double>(columns * read * width) + fold * static_cast<double>(met);
  }

  // What the choice depends on, in words. The extents of y do not follow from the rest (cover_all);
  // dilated and grouped convolutions have no choice.
  std::string in_words() const {
    std::ostringstream text;
    text << "convolution " << kPasses[static_cast<std::size_t>(pass)] << ", x " << x.shape()
         << ", W " << W.shape() << ", y " << y.shape() << ", stride " << window.stride << ", pad "
         << window.pad << ", products of "
         << (factors == Factors::bfloat16 ? "bfloat16" : "float32");
    return text.str();
  }

  bool knows(Kernel kernel) const {
    if (kernel == Kernel::winograd) return winograd_convolves(W.shape(), window);
    if (kernel == Kernel::gemm) {
      return pass != Pass::weight_grad && gemm_convolves(written(), window);
    }
    return kernel == Kernel::direct;
  }

 private:
  std::int64_t pairs() const { return W.shape(0) * W.shape(1); }
  // Channels of the image that is written, if it is one.
  std::int64_t written() const { return W.shape(pass == Pass::input_grad ? 1 : 0); }
};

Factors factors_for(const Array& x) {
  const bool coarse = x.dtype() == Dtype::bfloat16 || compute_precision() == Precision::medium;
  return coarse && simd::has_bfloat16_dot_product() ? Factors::bfloat16 : Factors::float32;
}

// oneDNN's kernel keeps the pixels that many taps have in common in registers; its gradients of
// such filters take five times as long as renga's.
Kernel cheapest_depthwise(Pass pass, const Array& W) {
  return pass == Pass::weight_grad || W.shape(3) <= 3 ? Kernel::depthwise : Kernel::direct;
}

Kernel cheapest(const Problem& problem) {
  if (problem.knows(Kernel::winograd)) {
    return problem.winograd_cost() < problem.direct_cost() ? Kernel::winograd : Kernel::direct;
  }
  return problem.gemm_cost() < problem.direct_cost() ? Kernel::gemm : Kernel::direct;
}

}  // namespace

void use_convolution_kernel(const std::string& name) {
  const auto found = std::find(kKernels.begin(), kKernels.end(), name);
  require<std::invalid_argument>(found != kKernels.end(),
                                 "use_convolution_kernel: expected auto, direct, winograd, gemm or "
                                 "depthwise, got ",
                                 name);
  chosen = static_cast<Kernel>(found - kKernels.begin());
}

ConvolutionChoice choose_convolution(ConvolutionPass pass, const Array& x, const Array& W,
                                     const Array& y, const Window& window) {
  const Kernel wanted = chosen;
  const Factors factors = factors_for(x);
  if (x.dtype() == Dtype::float32 && compute_precision() == Precision::high &&
      three_products_pay()) {
    return {Kernel::direct, Factors::bfloat16, true};
  }
  if (x.ndim() == 4 && depthwise_convolves(W.shape(), window)) {
    const Kernel kernel = wanted == Kernel::automatic ? cheapest_depthwise(pass, W) : wanted;
    return {kernel == Kernel::depthwise ? kernel : Kernel::direct, factors};
  }
  const Problem problem{pass, x, W, y, window, factors};
  const bool open =
      x.ndim() == 4 && (problem.knows(Kernel::winograd) || problem.knows(Kernel::gemm));
  if (!open) return {Kernel::direct, factors};
  if (wanted != Kernel::automatic) {
    return {problem.knows(wanted) ? wanted : Kernel::direct, factors};
  }
  const std::string name =
      chosen_kernel(problem.in_words(), [&] { return name_of(cheapest(problem)); });
  // One that was loaded may be anything.
  for (Kernel kernel : {Kernel::winograd, Kernel::gemm}) {
    if (name == name_of(kernel) && problem.knows(kernel)) return {kernel, factors};
  }
  return {Kernel::direct, factors};
}

}  // namespace renga
