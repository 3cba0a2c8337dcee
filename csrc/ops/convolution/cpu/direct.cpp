// Direct convolution by oneDNN. Weight gradients are cut into blocks by their shapes alone: the
// same bits on any number of threads.
#include <algorithm>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "devices/single_thread.h"
#include "ops/convolution/convolution.h"
#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/cost.h"
#include "ops/convolution/cpu/onednn.h"
#include "ops/convolution/cpu/selection.h"
#include "ops/matmul/cpu/blocking.h"
#include "ops/matmul/matmul.h"
#include "ops/shape/image.h"
#include "simd/cpu_features.h"
#include "tensor/views.h"

namespace renga::convolution {
namespace {

// A Block has the arrays that it reads, and the window that they are read with.
struct Block {
  Array gy, x;
  Window window;
};

std::int64_t largest_power_of_two(std::int64_t most) {
  std::int64_t power = 1;
  while (2 * power <= most) power *= 2;
  return power;
}

// Returns how many blocks the positions along an axis of gy are cut into. The blocks' gradients are
// added up, which must not take long.
std::int64_t summed_block_count(const Array& gy, const Array& gW, int axis) {
  constexpr std::int64_t kSmallWeights = 1 << 16;
  constexpr std::int64_t kLeastForSmall = 1024, kLeastForLarge = 8192;
  const std::int64_t positions = gy.size() / gy.shape(1);
  const std::int64_t least = gW.size() <= kSmallWeights ? kLeastForSmall : kLeastForLarge;
  const std::int64_t wanted = wanted_blocks(gy.size() * (gW.size() / gW.shape(0)));
  return largest_power_of_two(std::min({wanted, gy.shape(axis), positions / least}));
}

Block block_of_samples(const Problem& problem, std::int64_t begin, std::int64_t count) {
  return {slice_view(problem.y, 0, begin, count), slice_view(problem.x, 0, begin, count),
          problem.window};
}

// Rows of y, and the rows of x that their windows read; neighbours share some of these. No block
// lies entirely in the padding.
Block block_of_rows(const Problem& problem, std::int64_t begin, std::int64_t count) {
  const Array &x = problem.x, &gW = problem.W;
  Window window = problem.window;
  const std::int64_t first = begin * window.stride[0] - window.pad[0];
  const std::int64_t reach = window.reach(gW.shape(2), 0);
  const std::int64_t last = (begin + count - 1) * window.stride[0] - window.pad[0] + reach;
  const std::int64_t from = std::clamp<std::int64_t>(first, 0, x.shape(2) - 1);
  const std::int64_t to = std::clamp<std::int64_t>(last, from + 1, x.shape(2));
  window.pad[0] = from - first;
  return {slice_view(problem.y, 2, begin, count), slice_view(x, 2, from, to - from), window};
}

// gW = the sum of the gradients along the first axis of `terms`.
void add_up(const Array& terms, const Array& gW) {
  const std::int64_t size = gW.size(), count = terms.shape(0);
  const float* const from = terms.as<float>();
  float* const to = gW.as<float>();
  parallel_for(size, count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float sum = from[i];
      for (std::int64_t term = 1; term < count; ++term) sum += from[term * size + i];
      to[i] = sum;
    }
  });
}

// Whether each pixel of y goes with one pixel of x.
bool reads_single_pixels(const Problem& problem) {
  const Array &x = problem.x, &W = problem.W, &y = problem.y;
  const Window& window = problem.window;
  if (window.groups != 1) return false;
  for (int axis = 2; axis < W.ndim(); ++axis) {
    const std::int64_t last = (y.shape(axis) - 1) * window.stride[axis - 2];
    if (W.shape(axis) != 1 || window.pad[axis - 2] != 0 || last >= x.shape(axis)) return false;
  }
  return true;
}

bool is_at_step_one(const Problem& problem) {
  const Dims& stride = problem.window.stride;
  return stride == Dims::filled(stride.size(), 1);
}

// Whether each pixel of y is a product of the pixel of x at its place.
bool is_pointwise(const Problem& problem) {
  return is_at_step_one(problem) && reads_single_pixels(problem);
}

// The view of the pixels of x that y's go with.
Array read_pixels(const Problem& problem) {
  Array read = problem.x;
  for (int axis = 2; axis < read.ndim(); ++axis) {
    read = slice_view(read, axis, 0, problem.y.shape(axis), problem.window.stride[axis - 2]);
  }
  return read;
}

// Whether each pixel of gy is multiplied by one pixel of x, and there are enough channels for a
// matrix product to take no longer than oneDNN's convolution.
bool is_matrix_product(const Problem& problem) {
  constexpr std::int64_t kFewChannels = 24;
  return std::min(problem.W.shape(0), problem.W.shape(1)) >= kFewChannels &&
         reads_single_pixels(problem);
}

// (pixels, channels)
Array as_matrix(const Array& image) {
  const Array dense = contiguous(channels_last_view(image));
  return reshape_view(dense, {image.size() / image.shape(1), image.shape(1)});
}

void multiply(const Problem& problem) {
  const Array &gW = problem.W, &gy = problem.y;
  matmul_kernels.on(gy.device())
      .matmul(transpose_view(as_matrix(gy), {1, 0}), as_matrix(read_pixels(problem)),
              reshape_view(gW, {gW.shape(0), gW.shape(1)}), {}, nullptr);
}

// Calls body(i, begin, length) for `count` blocks of an extent, each on one thread.
template <class Body>
void for_each_block(const Problem& problem, std::int64_t extent, std::int64_t count,
                    const Body& body) {
  const Array &gy = problem.y, &gW = problem.W;
  const std::int64_t cost = gy.size() / count * (gW.size() / gW.shape(0)) / 8;
  for_each_alone(count, cost, [&](std::int64_t i) {
    const std::int64_t begin = i * extent / count;
    body(i, begin, (i + 1) * extent / count - begin);
  });
}

// Blocks along an axis of gy, whose gradients are added up.
void by_positions(const Problem& problem, int axis, std::int64_t count) {
  const Array& gW = problem.W;
  Shape shape = gW.shape();
  shape.insert(0, count);
  const Array terms = empty(shape, gW.dtype());
  for_each_block(problem, problem.y.shape(axis), count,
                 [&](std::int64_t i, std::int64_t begin, std::int64_t length) {
                   const Block block = axis == 0 ? block_of_samples(problem, begin, length)
                                                 : block_of_rows(problem, begin, length);
                   const Array term = select_view(terms, 0, i);
                   onednn_weight_grad({problem.pass, block.x, term, block.gy, block.window, nullptr,
                                       problem.arithmetic});
                 });
  add_up(terms, gW);
}

// Blocks of output channels, which have a part of gW each.
void by_output_channels(const Problem& problem) {
  constexpr std::int64_t kLeastChannels = 64, kMostBlocks = 8;
  const std::int64_t outputs = problem.W.shape(0);
  const std::int64_t wanted = std::clamp<std::int64_t>(outputs / kLeastChannels, 1, kMostBlocks);
  const std::int64_t count = problem.window.groups == 1 ? largest_power_of_two(wanted) : 1;
  for_each_block(problem, outputs, count,
                 [&](std::int64_t, std::int64_t begin, std::int64_t length) {
                   const Array gy_block = slice_view(problem.y, 1, begin, length);
                   const Array gW_block = slice_view(problem.W, 0, begin, length);
                   onednn_weight_grad(problem.of(gy_block, problem.x, gW_block));
                 });
}

void weight_grad(const Problem& problem) {
  const Array &x = problem.x, &gW = problem.W, &gy = problem.y;
  const bool float32 = x.dtype() == Dtype::float32 && !problem.multiplies_bfloat16();
  const bool is_product = is_matrix_product(problem);
  if (float32 && is_product) return multiply(problem);
  const bool single = gy.shape(0) == 1 && problem.window.pad[0] < x.shape(2);
  const int axis = single ? 2 : 0;
  const std::int64_t count = gW.dtype() == Dtype::float32 ? summed_block_count(gy, gW, axis) : 1;
  if (count > 1) return by_positions(problem, axis, count);
  // With few weights for many pixels (above), packing the pixels takes longer than a product gains.
  if (is_product && problem.multiplies_bfloat16()) return multiply(problem);
  by_output_channels(problem);
}

// `count` pixels of a channels-last image, as one row of an image.
Array row_of_pixels(const Array& image, std::int64_t begin, std::int64_t count) {
  const std::int64_t channels = image.shape(1), item = image.itemsize(), step = channels * item;
  return {image.storage(),
          image.data() + begin * step,
          {1, channels, 1, count},
          {count * step, item, count * step, step},
          image.dtype()};
}

// Whether a pass is a product of channels-last pixels by the weights, which oneDNN's convolutions
// take up to a third longer for. Transposing the weights for fewer pixels would take too long.
// Input gradients have not been compared with AVX-512.
bool multiplies_pixels(const Problem& problem) {
  const bool is_wide = simd::has_avx512();
  const std::int64_t fewest_pixels = is_wide ? 32 : 128;
  const Array &x = problem.x, &y = problem.y;
  return (problem.pass == Pass::forward || !is_wide) && problem.arithmetic == Arithmetic::float32 &&
         x.dtype() == Dtype::float32 && is_pointwise(problem) &&
         y.size() >= fewest_pixels * y.shape(1) && is_channels_last(x) && is_channels_last(y);
}

// The weights by which pixels are multiplied, (channels that are read, channels of the result):
// products of rows of weights are the fastest.
Array pixel_weights(const Problem& problem) {
  constexpr std::int64_t kTransposed = -1;  // sets the key apart from those of oneDNN's layouts
  const Array& W = problem.W;
  const auto matrix = [&] { return reshape_view(contiguous(W), {W.shape(0), W.shape(1)}); };
  if (problem.pass == Pass::input_grad) return matrix();
  return kept_or_packed(problem.cache, {kTransposed}, [&] {
    return contiguous(transpose_view(matrix(), {1, 0}));
  });
}

// The pixels [begin, begin + count) of the result, plus the bias.
void multiply_pixels(const Problem& problem, const Array& weights, const Array& bias,
                     std::int64_t begin, std::int64_t count) {
  const Array from = as_matrix(row_of_pixels(problem.first(), begin, count));
  const Array to = as_matrix(row_of_pixels(problem.result(), begin, count));
  matmul_kernels.on(to.device()).matmul(from, weights, to, {.bias = bias}, nullptr);
}

// A pass of oneDNN's, which does not add the bias.
void convolve(const Problem& problem, const Array& bias) {
  onednn_convolve(problem);
  if (bias.defined()) add_bias(problem.result(), bias);
}

// Calls body(i) for each of so many parts of the result.
template <class Body>
void for_each_convolved(const Problem& problem, std::int64_t count, const Body& body) {
  const std::int64_t cost = problem.y.size() / count * (problem.W.size() / problem.W.shape(0)) / 8;
  for_each_balanced(count, cost, body);
}

// A forward pass whose parts go through `pass` while they are in the cache: rows of pixels, or
// images.
void convolve_parts(const Problem& problem, const Epilogue& epilogue) {
  constexpr std::int64_t kLeastPixels = 256, kNumbers = 1 << 16, kLargeImage = 1 << 15;
  const Array &x = problem.x, &y = problem.y;
  const auto& [bias, accumulates, pass] = epilogue;
  const std::int64_t channels = y.shape(1), pixels = y.size() / channels, samples = y.shape(0);
  if (is_pointwise(problem) && is_channels_last(x)) {
    const Window window{.stride = {1, 1}, .pad = {0, 0}, .dilate = {1, 1}};
    const Array W = reshape_view(contiguous(problem.W), {channels, x.shape(1), 1, 1});
    const Array weights = multiplies_pixels(problem) ? pixel_weights(problem) : Array();
    const std::int64_t most = std::max(kLeastPixels, kNumbers / (x.shape(1) + channels));
    const std::int64_t step = divide_up(pixels, divide_up(pixels, most));
    return for_each_convolved(problem, divide_up(pixels, step), [&](std::int64_t i) {
      const std::int64_t begin = i * step, count = std::min(step, pixels - begin);
      if (weights.defined()) {
        multiply_pixels(problem, weights, bias, begin, count);
        return pass(begin * channels, (begin + count) * channels);
      }
      const Array from = row_of_pixels(x, begin, count), to = row_of_pixels(y, begin, count);
      convolve({problem.pass, from, W, to, window, problem.cache, problem.arithmetic}, bias);
      pass(begin * channels, (begin + count) * channels);
    });
  }
  const std::int64_t size = y.size() / samples;
  if (size < kLargeImage) {
    convolve(problem, bias);
    return pass(0, y.size());
  }
  for_each_convolved(problem, samples, [&](std::int64_t i) {
    const Array from = slice_view(x, 0, i, 1), to = slice_view(y, 0, i, 1);
    convolve(problem.of(from, problem.W, to), bias);
    pass(i * size, (i + 1) * size);
  });
}

bool supports(const Problem& problem) { return is_common(problem, 3); }

// Whether windows are longer than an image along an axis.
bool has_windows_beyond(const Problem& problem) {
  for (int axis = 0; axis < problem.window.stride.size(); ++axis) {
    const std::int64_t reach = problem.window.reach(problem.W.shape(2 + axis), axis);
    if (reach > problem.x.shape(2 + axis)) return true;
  }
  return false;
}

// Kernel offsets on the padding are skipped. The output channels are computed in vectors of 16.
// Before that, the weights are reordered, at a cost of `reorder` per element. Weight gradients of
// windows that are longer than the image take `beyond` times as long.
double cost(const Problem& problem) {
  constexpr double reorder = 24, beyond = 4;
  const bool is_slow = problem.pass == Pass::weight_grad && has_windows_beyond(problem);
  constexpr std::int64_t vector = 16;
  const std::int64_t channels = output_channels(problem);
  const std::int64_t computed =
      problem.pass == Pass::weight_grad ? channels : round_up(channels, vector);
  const auto positions = static_cast<double>(problem.y.shape(0) * reads_inside(problem));
  const std::int64_t input_channels = channel_pairs(problem) / channels;
  const double product = (is_slow ? beyond : 1) * multiplication_cost(problem);
  return static_cast<double>(computed * input_channels) * product * positions +
         reorder * static_cast<double>(problem.W.size());
}

// Whether a forward pass leaves out pixels of an image that oneDNN would bring to channels last.
bool skips_pixels(const Problem& problem) {
  return problem.pass == Pass::forward && !is_at_step_one(problem) &&
         reads_single_pixels(problem) && !is_channels_last(problem.x);
}

void run(const Problem& problem, const Epilogue& epilogue) {
  if (skips_pixels(problem)) {
    const Array read = read_pixels(problem);
    const Array x = empty_in_order(read.shape(), channels_last_axes(read.ndim()), read.dtype());
    copy(read, x);
    const int axes = problem.window.stride.size();
    const Window window{Dims::filled(axes, 1), Dims::filled(axes, 0), Dims::filled(axes, 1)};
    return run({problem.pass, x, problem.W, problem.y, window, problem.cache, problem.arithmetic},
               epilogue);
  }
  if (!onednn_supports(problem.x.dtype())) {
    in_float32(problem, [](const Problem& wide) { run(wide, {}); });
    return finish_image(problem.result(), epilogue);
  }
  if (problem.pass == Pass::weight_grad) return weight_grad(problem);
  if (epilogue.pass) return convolve_parts(problem, epilogue);
  if (!multiplies_pixels(problem)) return convolve(problem, epilogue.bias);
  const std::int64_t pixels = problem.y.size() / problem.y.shape(1);
  multiply_pixels(problem, pixel_weights(problem), epilogue.bias, 0, pixels);
}

}  // namespace

constinit const Algorithm kDirect{.name = "direct",
                                  .supports = supports,
                                  .cost = cost,
                                  .run = run,
                                  .adds_bias = true,
                                  .has_parts = true};

}  // namespace renga::convolution
