#include "ops/convolution_choice.cpu.h"

#include <algorithm>
#include <atomic>

#include "ops/winograd.cpu.h"

namespace renga {
namespace {

std::atomic<ConvolutionKernel> chosen{ConvolutionKernel::automatic};

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

// Both kernels multiply at the machine's speed, direct ones without the taps that fall on padding.
// Transforms cost as much as `image` multiplications for each transformed element of an image, and
// as `filter` for each of a filter (docs/performance.md has the measurements).
bool winograd_pays(const Array& x, const Array& W, const Array& y, const Window& window) {
  constexpr double image = 26, filter = 12;
  const WinogradScheme scheme = winograd_scheme(x.shape(), window);
  const auto tiles =
      static_cast<double>(y.shape(0) * ((y.shape(2) + scheme.tile - 1) / scheme.tile) *
                          ((y.shape(3) + scheme.tile - 1) / scheme.tile));
  const auto pairs = static_cast<double>(W.shape(0) * W.shape(1));
  const auto channels = static_cast<double>(W.shape(0) + W.shape(1));
  const auto direct =
      pairs * static_cast<double>(y.shape(0) * taps(x, W, y, window, 0) * taps(x, W, y, window, 1));
  return static_cast<double>(scheme.points) *
             (tiles * (pairs + image * channels) + filter * pairs) <
         direct;
}

}  // namespace

void use_convolution_kernel(ConvolutionKernel kernel) { chosen = kernel; }

bool by_winograd(const Array& x, const Array& W, const Array& y, const Window& window) {
  if (x.dtype() != Dtype::float32 || !winograd_convolves(W.shape(), window)) return false;
  const ConvolutionKernel kernel = chosen;
  if (kernel != ConvolutionKernel::automatic) return kernel == ConvolutionKernel::winograd;
  return winograd_pays(x, W, y, window);
}

}  // namespace renga
