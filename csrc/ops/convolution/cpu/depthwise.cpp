// Depthwise convolution: each channel has a filter of its own. There are only as many
// multiplications per pixel as kernel offsets, so the time is that of reading and writing each
// pixel once. Products and sums are in float32, or in float64 for such images. Results do not
// depend on the number of threads.
#include "ops/convolution/convolution.h"
#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/cost.h"
#include "ops/convolution/cpu/depthwise_gather.h"
#include "ops/convolution/cpu/depthwise_planes.h"
#include "ops/convolution/cpu/depthwise_weight_grad.h"
#include "ops/convolution/cpu/selection.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/image.h"

namespace renga::convolution {
namespace {

using depthwise::ColumnPattern;
using depthwise::GatherKernel;
using depthwise::PackedFilters;
using depthwise::PlaneKernel;
using depthwise::Sum;
using depthwise::WeightGradKernel;

// One number per channel, and zeros up to a whole block of channels.
Array initial_sums(const Problem& problem, const Array& bias) {
  const std::int64_t channels = problem.result().shape(1);
  const std::int64_t size = round_up(channels, PackedFilters<float>::kBlock);
  const Array sums = zeros({size}, problem.W.dtype());
  if (bias.defined()) copy(bias, slice_view(sums, 0, 0, channels));
  return sums;
}

void convolve_planes(const Problem& problem, const Array& bias) {
  const ChannelsLastOutput output(problem.y);
  const Array x = contiguous(problem.x);
  const PackedFilters<float> filters(problem.W);
  const Array initial = initial_sums(problem, bias);
  if (x.dtype() == Dtype::bfloat16) {
    PlaneKernel<bfloat16>(problem, x, filters, initial, output.dense()).run();
  } else {
    PlaneKernel<float>(problem, x, filters, initial, output.dense()).run();
  }
  output.finish();
}

// The columns of a kernel.
std::int64_t columns_of(const Array& W) { return W.shape(W.ndim() - 1); }

ColumnPattern pattern_of(const Problem& problem) {
  const Window& window = problem.window;
  const int axis = window.stride.size() - 1;
  const std::int64_t stride = window.stride[axis], pad = window.pad[axis];
  const std::int64_t dilation = window.dilate[axis];
  const bool forward = problem.pass == Pass::forward;
  ColumnPattern pattern{.period = forward ? 1 : stride,
                        .step = forward ? stride : 1,
                        .dilation = dilation,
                        .is_reversed = !forward};
  if (pattern.period == 1) {
    pattern.first = forward ? -pad : pad - (columns_of(problem.W) - 1) * dilation;
  }
  return pattern;
}

// The rows of a row-major (N, [D,] H, W, C): (N, D H, W, C).
Array as_rows(const Array& image) {
  const int last = image.ndim() - 1;
  const std::int64_t columns = image.shape(last - 1), channels = image.shape(last);
  const std::int64_t rows = image.size() / (image.shape(0) * columns * channels);
  return reshape_view(image, {image.shape(0), rows, columns, channels});
}

bool reads_planes(const Problem& problem) {
  return problem.pass == Pass::forward && has_common_images(problem) &&
         !is_channels_last(problem.x);
}

// Calls body(Pixel{}) with the images' type.
template <class Body>
void with_pixel(Dtype dtype, const Body& body) {
  if (dtype == Dtype::bfloat16) return body(bfloat16{});
  if (dtype == Dtype::float64) return body(double{});
  body(float{});
}

// Forward and input gradient.
void gather(const Problem& problem, const Epilogue& epilogue) {
  const bool forward = problem.pass == Pass::forward;
  if (reads_planes(problem)) return convolve_planes(problem, epilogue.bias);
  const IndexMap map = forward ? map_y_to_x(problem) : map_x_to_y(problem);
  const ColumnPattern pattern = pattern_of(problem);
  const ChannelsLastOutput output(problem.result());
  const Array input = as_rows(dense_channels_last(problem.first()));
  const Array initial = initial_sums(problem, epilogue.bias);
  with_pixel(input.dtype(), [&]<class Pixel>(Pixel) {
    const PackedFilters<Sum<Pixel>> filters(problem.W);
    GatherKernel<Pixel>(input, filters, map, pattern, as_rows(output.dense()), initial)
        .run(epilogue.pass);
  });
  output.finish();
}

void weight_grad(const Problem& problem) {
  const IndexMap map = map_y_to_x(problem);
  const Array x = as_rows(dense_channels_last(problem.x));
  const Array gy = as_rows(dense_channels_last(problem.y));
  with_pixel(x.dtype(), [&]<class Pixel>(Pixel) {
    const Array sums = WeightGradKernel<Pixel>(gy, x, map, problem.window).run();
    copy(transpose_view(sums, {1, 0}), reshape_view(problem.W, {sums.shape(1), sums.shape(0)}));
  });
}

// The filters of each channel of x.
std::int64_t multiplier(const Problem& problem) {
  return problem.W.shape(0) / problem.window.groups;
}

bool supports(const Problem& problem) {
  if (problem.x.dtype() != Dtype::float64) return is_common(problem, 3) && is_depthwise(problem);
  return has_common_extents(problem, 3) && problem.window.groups > 1 && problem.W.shape(1) == 1;
}

// For large kernels of images oneDNN is faster than an inner loop that loads pixels again for each
// kernel offset; its depthwise weight gradient takes five times as long as renga's. It has no
// float64.
double cost(const Problem& problem) {
  const bool is_fastest = problem.x.dtype() == Dtype::float64 ||
                          problem.pass == Pass::weight_grad || problem.W.ndim() > 4 ||
                          columns_of(problem.W) <= 3 ||
                          depthwise::has_inner_loop(pattern_of(problem), columns_of(problem.W));
  return is_fastest ? no_cost(problem) : highest_cost(problem);
}

void run_each(const Problem& problem, const Epilogue& epilogue) {
  problem.pass == Pass::weight_grad ? weight_grad(problem) : gather(problem, epilogue);
}

// With several filters per channel, x is repeated for each of them, or the sum of the gradients of
// such a repeated x is taken.
void run(const Problem& problem, const Epilogue& epilogue) {
  const std::int64_t count = multiplier(problem), channels = problem.window.groups;
  if (count == 1) return run_each(problem, epilogue);
  const bool is_written = problem.pass == Pass::input_grad;
  const Array x = channels_last_view(problem.x);
  const int axes = x.ndim();
  const Array image =
      empty_in_order(image_shape(x.shape(0), channels * count, spatial_extents(problem.x)),
                     channels_last_axes(axes), x.dtype());
  Shape shape = x.shape();
  shape.push_back(count);
  const Array repeated = reshape_view(channels_last_view(image), shape);
  if (!is_written) copy(broadcast_view("convolution", expand_view(x, axes), shape), repeated);
  Window window = problem.window;
  window.groups = channels * count;
  const Problem each{problem.pass, image, problem.W, problem.y, window};
  if (!is_written) return run_each(each, epilogue);
  run_each(each, {});
  const auto& kernels = elementwise_kernels.on(x.device());
  copy(select_view(repeated, axes, 0), x);
  for (std::int64_t i = 1; i < count; ++i) {
    kernels.binary(Binary::add, 0, x, select_view(repeated, axes, i), x);
  }
  finish_image(problem.x, epilogue);
}

}  // namespace

constinit const Algorithm kDepthwise{.name = "depthwise",
                                     .supports = supports,
                                     .cost = cost,
                                     .run = run,
                                     .adds_bias = true,
                                     .has_parts = true};

}  // namespace renga::convolution
