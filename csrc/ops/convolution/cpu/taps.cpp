// Convolutions by kernels that slide along one axis, as matrix products: for each of their taps,
// the pixels of y meet an unbroken run of those of x in each sample. With AVX-512, the products of
// weight gradients reach the machine's peak, of which oneDNN's gradients take a half to nine
// tenths; with AVX2 all products reach four fifths of it, oneDNN's four to seven tenths.
#include <algorithm>

#include "devices/rounding.h"
#include "devices/single_thread.h"
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

// Whether oneDNN's images take longer than products do: up to twice as long, where taps are far
// apart. They have not been compared with AVX-512.
bool has_distant_taps(const Problem& problem, int axis) {
  constexpr std::int64_t kFar = 256;
  return !simd::has_avx512() && problem.window.reach(problem.W.shape(2 + axis), axis) > kFar;
}

// Products of fewer channels do not fill registers.
bool supports(const Problem& problem) {
  constexpr std::int64_t kFewestOutputs = 24, kFewestInputs = 32;
  if (problem.arithmetic != Arithmetic::float32 || !is_common(problem, 3) ||
      problem.x.dtype() != Dtype::float32 || problem.W.dtype() != Dtype::float32 ||
      problem.window.groups != 1 || problem.W.shape(0) < kFewestOutputs ||
      problem.W.shape(1) < kFewestInputs) {
    return false;
  }
  const int axis = sliding_axis(problem);
  return axis >= 0 && (problem.pass == Pass::weight_grad || has_distant_taps(problem, axis));
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

// oneDNN's kernels take a fifth longer on average. In weight gradients, each product is added to
// those before, at a cost of `add` per number.
double cost(const Problem& problem) {
  constexpr double product = 0.85;
  const double add = simd::has_avx512() ? 14 : 30;
  const int axis = sliding_axis(problem);
  const std::int64_t samples = problem.y.shape(0);
  const auto products =
      product * static_cast<double>(channel_pairs(problem) * samples * reads_inside(problem));
  if (problem.pass != Pass::weight_grad) return products;
  const std::int64_t parts = divide_up(problem.y.shape(2 + axis), shared_positions(problem, axis));
  return products + add * static_cast<double>(problem.W.size() * samples * parts);
}

// The pixels of a sample from `begin` on along the axis, as a matrix (pixels, channels).
Array pixel_rows(const Array& channels_last, std::int64_t sample, int axis, std::int64_t begin,
                 std::int64_t count) {
  const Array pixels = slice_view(select_view(channels_last, 0, sample), axis, begin, count);
  const std::int64_t channels = pixels.shape(pixels.ndim() - 1);
  return reshape_view(pixels, {pixels.size() / channels, channels});
}

// y's pixel i meets pixel i + offset of x.
std::int64_t offset_of(const Problem& problem, int axis, std::int64_t tap) {
  return tap * problem.window.dilate[axis] - problem.window.pad[axis];
}

void weight_grad(const Problem& problem, int axis) {
  const Array x = dense_channels_last(problem.x), gy = dense_channels_last(problem.y);
  const Array& gW = problem.W;
  const std::int64_t taps = gW.shape(2 + axis), samples = gy.shape(0);
  const Array terms = zeros({taps, gW.shape(0), gW.shape(1)}, gW.dtype());
  const auto& kernels = matmul_kernels.on(gy.device());
  const auto add_product = [&](std::int64_t sample, std::int64_t tap, std::int64_t first,
                               std::int64_t last) {
    const std::int64_t offset = offset_of(problem, axis, tap);
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

// (taps, channels that are read, channels of the result)
Array tap_weights(const Problem& problem, std::int64_t taps) {
  constexpr std::int64_t kByTap = -2;  // sets the key apart from those of other layouts
  const Array& W = problem.W;
  const auto by_tap = [&](const Axes& axes) {
    return contiguous(
        transpose_view(reshape_view(contiguous(W), {W.shape(0), W.shape(1), taps}), axes));
  };
  if (problem.pass == Pass::input_grad) return by_tap({2, 0, 1});
  return kept_or_packed(problem.cache, {kByTap}, [&] { return by_tap({2, 1, 0}); });
}

// An image, of which each part stays in the cache while the products of all taps are added to it.
class ImageOfTaps {
 public:
  ImageOfTaps(const Problem& problem, int axis, const Array& bias)
      : problem_(problem),
        axis_(axis),
        taps_(problem.W.shape(2 + axis)),
        bias_(bias),
        from_(dense_channels_last(problem.first())),
        weights_(tap_weights(problem, taps_)),
        output_(problem.result()) {}

  void compute() const {
    const std::int64_t samples = to().shape(0), length = to().shape(1 + axis_);
    const std::int64_t step = shared_positions(problem_, axis_), parts = divide_up(length, step);
    const std::int64_t cost = to().size() / (samples * parts) * weights_.shape(1) * taps_ / 8;
    for_each_balanced(samples * parts, cost, [&](std::int64_t i) {
      const std::int64_t first = i % parts * step;
      compute_part(i / parts, first, std::min(first + step, length));
    });
    output_.finish();
  }

 private:
  const Array& to() const { return output_.dense(); }
  // The result's pixel i meets pixel i + distance of the image that is read.
  std::int64_t distance(std::int64_t tap) const {
    const std::int64_t offset = offset_of(problem_, axis_, tap);
    return problem_.pass == Pass::forward ? offset : -offset;
  }

  // The product of a tap that all pixels have is written, if there is one; others are added.
  void compute_part(std::int64_t sample, std::int64_t first, std::int64_t last) const {
    const std::int64_t length = from_.shape(1 + axis_);
    std::int64_t whole = 0;
    while (whole < taps_ && (first + distance(whole) < 0 || last + distance(whole) > length)) {
      ++whole;
    }
    if (whole < taps_) {
      multiply(whole, sample, first, last, {.bias = bias_});
    } else {
      const Array rows = pixel_rows(to(), sample, axis_, first, last - first);
      const Array start = bias_.defined() ? bias_ : zeros({1}, rows.dtype());
      copy(broadcast_view("convolution", start, rows.shape()), rows);
    }
    for (std::int64_t tap = 0; tap < taps_; ++tap) {
      if (tap == whole) continue;
      const std::int64_t begin = std::max(first, -distance(tap));
      const std::int64_t end = std::min(last, length - distance(tap));
      if (begin < end) multiply(tap, sample, begin, end, {.accumulates = true});
    }
  }

  void multiply(std::int64_t tap, std::int64_t sample, std::int64_t begin, std::int64_t end,
                const renga::Epilogue& epilogue) const {
    matmul_kernels.on(to().device())
        .matmul(pixel_rows(from_, sample, axis_, begin + distance(tap), end - begin),
                select_view(weights_, 0, tap), pixel_rows(to(), sample, axis_, begin, end - begin),
                epilogue, nullptr);
  }

  const Problem& problem_;
  const int axis_;
  const std::int64_t taps_;
  const Array& bias_;
  const Array from_, weights_;
  const ChannelsLastOutput output_;
};

void run(const Problem& problem, const Epilogue& epilogue) {
  const int axis = sliding_axis(problem);
  if (problem.pass == Pass::weight_grad) return weight_grad(problem, axis);
  ImageOfTaps(problem, axis, epilogue.bias).compute();
}

}  // namespace

constinit const Algorithm kTaps{
    .name = "taps", .supports = supports, .cost = cost, .run = run, .adds_bias = true};

}  // namespace renga::convolution
