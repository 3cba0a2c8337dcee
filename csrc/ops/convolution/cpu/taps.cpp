// Weight gradients of kernels that slide along one axis, as matrix products: for each of their
// taps, the pixels of gy meet an unbroken run of those of x in each sample. With AVX-512, these
// products reach the machine's peak, of which oneDNN's gradients take a half to nine tenths; with
// AVX2 they reach four fifths of it, oneDNN's four to seven tenths.
#include <algorithm>

#include "devices/rounding.h"
#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/cost.h"
#include "ops/convolution/cpu/selection.h"
#include "ops/matmul/matmul.h"
#include "simd/cpu_features.h"
#include "tensor/views.h"

namespace renga::convolution {
namespace {

// Returns the axis of pixels that the kernel slides along in steps of one, if along no other one;
// -1 for other kernels. Those before it have a single pixel.
int sliding_axis(const Problem& problem) {
  const auto& [stride, pad, dilate, groups] = problem.window;
  int sliding = -1;
  for (int axis = 0; axis < stride.size(); ++axis) {
    const bool slides = problem.W.shape(2 + axis) > 1;
    if (slides && sliding >= 0) return -1;
    if (slides) sliding = axis;
    const bool is_whole = pad[axis] == 0 && problem.x.shape(2 + axis) == problem.y.shape(2 + axis);
    if (stride[axis] != 1 || (!slides && !is_whole)) return -1;
  }
  for (int axis = 0; axis < sliding; ++axis) {
    if (problem.x.shape(2 + axis) != 1) return -1;
  }
  return sliding;
}

// Products of fewer channels do not fill registers.
bool supports(const Problem& problem) {
  constexpr std::int64_t kFewestOutputs = 24, kFewestInputs = 32;
  return problem.pass == Pass::weight_grad && problem.arithmetic == Arithmetic::float32 &&
         is_common(problem, 3) && problem.x.dtype() == Dtype::float32 &&
         problem.W.dtype() == Dtype::float32 && problem.window.groups == 1 &&
         problem.W.shape(0) >= kFewestOutputs && problem.W.shape(1) >= kFewestInputs &&
         sliding_axis(problem) >= 0;
}

// How many positions along the axis the taps share while their pixels are in the second-level
// cache.
std::int64_t shared_positions(const Problem& problem, int axis) {
  constexpr std::int64_t kNumbers = 1 << 17, kFewestPixels = 512;
  std::int64_t pixels = 1;
  for (int behind = 3 + axis; behind < problem.y.ndim(); ++behind) {
    pixels *= problem.y.shape(behind);
  }
  const std::int64_t channels = problem.W.shape(0) + problem.W.shape(1);
  return std::max<std::int64_t>(1, std::max(kNumbers / channels, kFewestPixels) / pixels);
}

// Each product is added to those before, at a cost of `add` per number. oneDNN's kernels take a
// fifth longer on average.
double cost(const Problem& problem) {
  constexpr double product = 0.85;
  const double add = simd::has_avx512() ? 14 : 30;
  const int axis = sliding_axis(problem);
  const std::int64_t samples = problem.y.shape(0);
  const std::int64_t parts = divide_up(problem.y.shape(2 + axis), shared_positions(problem, axis));
  return product * static_cast<double>(channel_pairs(problem) * samples * reads_inside(problem)) +
         add * static_cast<double>(problem.W.size() * samples * parts);
}

// The pixels of a sample from `begin` on along the axis, as a matrix (pixels, channels).
Array pixel_rows(const Array& channels_last, std::int64_t sample, int axis, std::int64_t begin,
                 std::int64_t count) {
  const Array pixels = slice_view(select_view(channels_last, 0, sample), axis, begin, count);
  const std::int64_t channels = pixels.shape(pixels.ndim() - 1);
  return reshape_view(pixels, {pixels.size() / channels, channels});
}

void run(const Problem& problem, const Epilogue&) {
  const Array x = dense_channels_last(problem.x), gy = dense_channels_last(problem.y);
  const Array& gW = problem.W;
  const int axis = sliding_axis(problem);
  const std::int64_t taps = gW.shape(2 + axis), samples = gy.shape(0);
  const Array terms = zeros({taps, gW.shape(0), gW.shape(1)}, gW.dtype());
  const auto& kernels = matmul_kernels.on(gy.device());
  const auto add_product = [&](std::int64_t sample, std::int64_t tap, std::int64_t first,
                               std::int64_t last) {
    // gy's pixel i meets x's pixel i + offset.
    const std::int64_t offset = tap * problem.window.dilate[axis] - problem.window.pad[axis];
    const std::int64_t begin = std::max(first, -offset);
    const std::int64_t end = std::min(last, x.shape(1 + axis) - offset);
    if (begin >= end) return;
    const Array left = pixel_rows(gy, sample, axis, begin, end - begin);
    const Array right = pixel_rows(x, sample, axis, begin + offset, end - begin);
    kernels.matmul(transpose_view(left, {1, 0}), right, select_view(terms, 0, tap),
                   {.accumulates = true}, nullptr);
  };
  const std::int64_t length = gy.shape(1 + axis), step = shared_positions(problem, axis);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    for (std::int64_t first = 0; first < length; first += step) {
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        add_product(sample, tap, first, std::min(first + step, length));
      }
    }
  }
  copy(transpose_view(terms, {1, 2, 0}), reshape_view(gW, {gW.shape(0), gW.shape(1), taps}));
}

}  // namespace

constinit const Algorithm kTaps{.name = "taps", .supports = supports, .cost = cost, .run = run};

}  // namespace renga::convolution
