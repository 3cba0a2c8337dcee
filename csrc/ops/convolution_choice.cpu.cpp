#include "ops/convolution_choice.cpu.h"

#include <algorithm>
#include <atomic>

#include "ops/winograd.cpu.h"

namespace renga {
namespace {

std::atomic<ConvolutionKernel> chosen{ConvolutionKernel::automatic};

// Taps of 3 that fall on the image, summed over all positions along an axis.
std::int64_t taps(const Array& x, const Array& y, const Window& window, int axis) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < y.shape(2 + axis); ++i) {
    const std::int64_t first = i - window.pad[axis];
    count += std::max<std::int64_t>(
        0, std::min(first + 3, x.shape(2 + axis)) - std::max<std::int64_t>(first, 0));
  }
  return count;
}

// Both kernels multiply at the machine's speed, direct ones without the taps that fall on padding.
// Transforms cost as much as `tile` multiplications for each element of a transformed image and
// `filter` for each of a filter (docs/performance.md has the measurements).
bool winograd_pays(const Array& x, const Array& W, const Array& y, const Array& tiled,
                   const Window& window) {
  constexpr double tile = 26, filter = 20;
  const auto [inputs, outputs] = std::array{W.shape(1), W.shape(0)};
  const auto tiles =
      static_cast<double>(tiled.shape(0) * ((tiled.shape(2) + 3) / 4) * ((tiled.shape(3) + 3) / 4));
  const auto pairs = static_cast<double>(inputs * outputs);
  const auto direct =
      pairs * static_cast<double>(x.shape(0) * taps(x, y, window, 0) * taps(x, y, window, 1));
  const auto channels = static_cast<double>(inputs + outputs);
  return 36 * (tiles * (pairs + tile * channels) + filter * pairs) < direct;
}

}  // namespace

void use_convolution_kernel(ConvolutionKernel kernel) { chosen = kernel; }

bool by_winograd(const Array& x, const Array& W, const Array& y, const Array& tiled,
                 const Window& window) {
  if (x.dtype() != Dtype::float32 || !winograd_convolves(W.shape(), window)) return false;
  const ConvolutionKernel kernel = chosen;
  if (kernel != ConvolutionKernel::automatic) return kernel == ConvolutionKernel::winograd;
  return winograd_pays(x, W, y, tiled, window);
}

}  // namespace renga
