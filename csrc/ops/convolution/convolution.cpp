// Convolution: shapes, forward and gradients. Its kernels are in cpu/ and cuda/.
#include "ops/convolution/convolution.h"

#include <algorithm>
#include <limits>

#include "autograd/node.h"
#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "devices/rounding.h"
#include "devices/single_thread.h"
#include "lazy/deferred_parts.h"
#include "ops/convolution/problem.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/precision.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/image.h"
#include "ops/shape/manipulation.h"
#include "ops/shape/one_device.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<ConvolutionKernels> convolution_kernels{"convolution"};

namespace convolution {
namespace {

// body(problem), in which images of one axis of pixels have a row.
template <class Body>
auto with_two_axes(const Problem& problem, const Body& body) {
  if (problem.x.ndim() > 3) return body(problem);
  const auto with_row = [](const Array& x) { return expand_view(x, 2); };
  const Array x = with_row(problem.x), W = with_row(problem.W), y = with_row(problem.y);
  Window window = problem.window;
  window.stride.insert(0, 1);
  window.pad.insert(0, 0);
  window.dilate.insert(0, 1);
  return body(
      {problem.pass, x, W, y, window, problem.cache, problem.arithmetic, problem.of_samples});
}

// Whether the gradient has been added to what the result holds.
bool add_weight_grad(const Problem& problem) {
  const auto add = convolution_kernels.on(problem.W.device()).add_weight_grad;
  const bool is_empty = problem.y.size() == 0 || problem.W.size() == 0;
  if (add == nullptr || is_empty) return false;
  const GilRelease work;
  return with_two_axes(problem, add);
}

}  // namespace

void compute(const Problem& problem, const Epilogue& epilogue) {
  const GilRelease work;
  const Array& result = problem.result();
  if (result.size() == 0) return;
  if (problem.first().size() > 0 && problem.second().size() > 0) {
    const auto run_on_device = convolution_kernels.on(result.device()).run;
    return with_two_axes(problem, [&](const Problem& p) { run_on_device(p, epilogue); });
  }
  fill(result, 0);
  finish_image(result, epilogue);
}

}  // namespace convolution

namespace {

using convolution::Arithmetic, convolution::compute, convolution::Pass, convolution::Problem;
using Bias = std::optional<Variable>;

// The three operations. `extents` are those of the result, which strides leave open.
Variable forward(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                 const Dims& extents, const Ref<PackedWeightCache>& cache);
Variable input_grad(const Variable& gy, const Variable& W, const Bias& b, const Window& window,
                    const Dims& extents, const Ref<PackedWeightCache>& cache);
// `image` has the elements of x, in the same or another memory order. The result is undefined where
// the gradient was added to that of earlier passes.
Variable weight_grad(const Variable& gy, const Variable& x, const Array& image,
                     const Window& window, const Dims& kernel, GradientSink to = {});

// The dtype of weights for images of a dtype.
Dtype weight_dtype(Dtype images) { return images == Dtype::bfloat16 ? Dtype::float32 : images; }

Dims extents_of(const Variable& x) {
  return Dims(std::span(x.shape().begin() + 2, x.shape().end()));
}

// Each weight of a convolution to or from x is multiplied with so many pixels.
std::int64_t pixels_of(const Variable& x) { return x.shape(0) * extents_of(x).product(); }

const char* name_for(const Variable& x, const char* name_2d, const char* name_nd) {
  return x.ndim() == 4 ? name_2d : name_nd;
}

Array array_of(const Bias& b) { return b ? b->array() : Array(); }

Variable record_with_bias(const char* name, const Array& y, const Bias& b, Edge image,
                          Edge weights) {
  if (!b) return record(name, y, {std::move(image), std::move(weights)});
  auto vjp_b = [](const Variable& gy) {
    Axes axes = channels_last_axes(gy.ndim());
    axes.pop_back();
    return sum(gy, axes);
  };
  return record(name, y, {std::move(image), std::move(weights), {*b, vjp_b}});
}

// A channels-last copy of x; undefined if x is channels-last.
Array reordered(const Array& x) {
  const Axes last = channels_last_axes(x.ndim());
  if (transpose_view(x, last).is_contiguous()) return Array();
  const Array image = empty_in_order(x.shape(), last, x.dtype(), x.device());
  copy(x, image);
  return image;
}

// Calls body(begin, end) for groups of so many samples.
template <class Body>
void for_each_group(std::int64_t samples, std::int64_t group, std::int64_t cost, const Body& body) {
  for_each_balanced(divide_up(samples, group), group * cost,
                    [&](std::int64_t i) { body(i * group, std::min(samples, (i + 1) * group)); });
}

// A pending convolution, whose parts are whole pixels. With the computation of x, if it follows
// one, it is computed a few samples at a time: what it reads of them is still in the cache.
class DeferredConvolution final : public DeferredParts {
 public:
  // What x is convolved with, and how.
  struct Filters {
    Array W, b;
    Window window;
    Ref<PackedWeightCache> cache;
    Precision precision = compute_precision();
  };

  DeferredConvolution(const Array& x, const Filters& filters, const Array& y)
      : DeferredParts(y, {x, filters.W}, y.shape(1)), x_(x), filters_(filters) {}
  DeferredConvolution(const Ref<const DeferredParts>& x, const Filters& filters, const Array& y)
      : DeferredParts(y, x, filters.W, y.shape(1)), x_(x->array()), filters_(filters) {}

  void compute_parts(const Array& y, std::int64_t first, const PartPass& pass) const override {
    const std::int64_t samples = y.shape(0), size = y.size() / samples, sample = first / size;
    const DeferredParts* const source = followed();
    if (source == nullptr) return convolve(slice_view(x_, 0, sample, samples), y, pass);
    // Some samples are a group of what follows.
    const std::int64_t group = samples == array().shape(0) ? group_size() : samples;
    const std::int64_t cost = size * (filters_.W.size() / filters_.W.shape(0)) / 8;
    for_each_group(samples, group, cost, [&](std::int64_t begin, std::int64_t end) {
      const Array like = slice_view(x_, 0, sample + begin, end - begin);
      const Array x = empty_channels_last(like, x_.shape(1), spatial_extents(x_));
      source->compute_parts(x, (sample + begin) * (x_.size() / x_.shape(0)), {});
      PartPass shifted;
      if (pass) {
        shifted = [&pass, before = begin * size](std::int64_t from, std::int64_t to) {
          pass(before + from, before + to);
        };
      }
      convolve(x, slice_view(y, 0, begin, end - begin), shifted);
    });
  }

 private:
  // Samples that stay in a core's own cache, of as many pixels as products of all samples are
  // computed with, and no smaller than the weights, which each group reads.
  std::int64_t group_size() const {
    constexpr std::int64_t kCached = 1 << 20, kLeastPixels = 256;
    const std::int64_t samples = array().shape(0), pixels = array().size() / (samples * unit());
    const std::int64_t bytes = std::max(kCached, filters_.W.size() * filters_.W.itemsize());
    const std::int64_t least = divide_up(kLeastPixels, pixels);
    const std::int64_t most = std::min(samples, std::max(bytes / sample_bytes(), least));
    return divide_up(samples, divide_up(samples, most));
  }

  void convolve(const Array& x, const Array& y, const PartPass& pass) const {
    const auto& [W, b, window, cache, precision] = filters_;
    const SettingScope scope(&Settings::precision, precision);
    convolution::compute(
        {Pass::forward, x, W, y, window, cache.get(), Arithmetic::float32, array().shape(0)},
        {.bias = b, .pass = pass});
  }

  const Array x_;
  const Filters filters_;
};

// Whether there is no graph, and nothing writes to W before it is exposed.
bool may_defer(const Variable& x, const Variable& W, const Bias& b, const Array& y,
               const Ref<PackedWeightCache>& cache) {
  const bool is_recorded =
      backprop_enabled() && (x.requires_grad() || W.requires_grad() || (b && b->requires_grad()));
  return !is_recorded && cache && convolution_kernels.on(y.device()).has_parts &&
         y.size() >= GilRelease::kMinElements;
}

// The pending computation of x that its convolution to y should follow: of images that do not all
// stay in a core's own cache, and of whose numbers each is multiplied few times, so that writing
// and reading them takes as long.
Ref<const DeferredParts> pending_images(const Variable& x, const Variable& W, const Array& y) {
  constexpr std::int64_t kLeastBytes = 1 << 20, kMostProducts = 192;
  constexpr int kMostBefore = 3;  // what follows y may be a part of it, too
  const Array& image = x.metadata();
  const Ref<const DeferredParts> parts = pending_parts(x.body()->deferred());
  const bool fits = parts && parts->depth() <= kMostBefore && parts->unit() == image.shape(1) &&
                    image.shape(0) > 1 && image.size() * image.itemsize() >= kLeastBytes &&
                    y.size() * (W.size() / W.shape(0)) <= kMostProducts * image.size() &&
                    channels_last_view(image).is_contiguous();
  return fits ? parts : nullptr;
}

Variable forward(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                 const Dims& extents, const Ref<PackedWeightCache>& cache) {
  const Array y = empty_channels_last(x.metadata(), W.shape(0), extents);
  const bool defers = may_defer(x, W, b, y, cache);
  const auto deferred = [&](const auto& read) {
    const Array bias = b ? copy_of(b->array()) : Array();
    const Variable result(y);
    result.body()->defer(make_ref<DeferredConvolution>(
        read, DeferredConvolution::Filters{W.array(), bias, window, cache}, y));
    return result;
  };
  if (defers) {
    if (const Ref<const DeferredParts> source = pending_images(x, W, y)) return deferred(source);
  }
  const Problem problem{Pass::forward, x.array(), W.array(), y, window, cache.get()};
  const auto prefers_copy = convolution_kernels.on(x.device()).prefers_channels_last;
  // The copy serves all passes.
  const Array image =
      prefers_copy != nullptr && prefers_copy(problem) ? reordered(x.array()) : Array();
  const Array& read = image.defined() ? image : x.array();
  if (defers && (image.defined() || is_internal(read))) return deferred(read);
  compute(problem.of(read, W.array(), y), {array_of(b)});
  auto vjp_x = [W, window, extents = extents_of(x)](const Variable& gy) {
    return input_grad(gy, W, {}, window, extents, packed_weight_cache(W, pixels_of(gy), true));
  };
  auto vjp_W = [x, image, window, kernel = extents_of(W)](const Variable& gy, GradientSink& to) {
    return weight_grad(gy, x, image.defined() ? image : x.array(), window, kernel, to);
  };
  return record_with_bias(name_for(x, "Convolution2DFunction", "ConvolutionND"), y, b, {x, vjp_x},
                          {W, vjp_W});
}

Variable input_grad(const Variable& gy, const Variable& W, const Bias& b, const Window& window,
                    const Dims& extents, const Ref<PackedWeightCache>& cache) {
  const Array gx = empty_channels_last(gy.array(), W.shape(1) * window.groups, extents);
  compute({Pass::input_grad, gx, W.array(), gy.array(), window, cache.get()}, {array_of(b)});
  auto vjp_gy = [W, window, extents = extents_of(gy)](const Variable& ggx) {
    return forward(ggx, W, {}, window, extents, packed_weight_cache(W, pixels_of(ggx), true));
  };
  auto vjp_W = [gy, window, kernel = extents_of(W)](const Variable& ggx, GradientSink& to) {
    return weight_grad(gy, ggx, ggx.array(), window, kernel, to);
  };
  return record_with_bias(name_for(gy, "Deconvolution2DFunction", "DeconvolutionND"), gx, b,
                          {gy, vjp_gy}, {W, vjp_W});
}

Variable weight_grad(const Variable& gy, const Variable& x, const Array& image,
                     const Window& window, const Dims& kernel, GradientSink to) {
  const Shape shape = image_shape(gy.shape(1), x.shape(1) / window.groups, kernel);
  const Dtype dtype = weight_dtype(x.dtype());
  const Array grad = cast(gy.array(), x.dtype());
  const Array sum = to.earlier_sum(shape, dtype, x.device());
  if (sum.defined() &&
      convolution::add_weight_grad({Pass::weight_grad, image, sum, grad, window})) {
    return Variable();
  }
  const Array gW = to.empty(shape, dtype, x.device());
  compute({Pass::weight_grad, image, gW, grad, window}, {});
  auto vjp_gy = [x, window, extents = extents_of(gy)](const Variable& ggW) {
    return forward(x, ggW, {}, window, extents, nullptr);
  };
  auto vjp_x = [gy, window, extents = extents_of(x)](const Variable& ggW) {
    return input_grad(gy, ggW, {}, window, extents, nullptr);
  };
  return record(name_for(x, "Convolution2DGradW", "ConvolutionNDGradW"), gW,
                {{gy, vjp_gy}, {x, vjp_x}});
}

void check(const char* op, const Variable& x, const Variable& W, const Window& window) {
  require_one_device(op, x.device(op), W.device(op));
  require(is_float(x.dtype()) && is_float(W.dtype()), op,
          ": expected x and W of a float dtype, got ", x.dtype(), " and ", W.dtype());
  require(x.ndim() > 2 && W.ndim() == x.ndim(), op,
          ": expected x and W with the same number of axes, 3 or more, got ", x.shape(), " and ",
          W.shape());
  const int axes = x.ndim() - 2;
  check_window(op, axes, window.stride, window.pad, window.dilate);
  const bool is_valid_kernel = std::all_of(
      W.shape().begin() + 2, W.shape().end(),
      [](std::int64_t k) { return k > 0 && k <= std::numeric_limits<std::int32_t>::max(); });
  require(is_valid_kernel, op,
          ": expected W with a kernel of at least 1 and below 2^31 along each axis, got ",
          W.shape());
  require<std::invalid_argument>(
      window.groups > 0 && window.groups <= std::numeric_limits<std::int32_t>::max(), op,
      ": expected groups from 1 to 2^31 - 1, got ", window.groups);
  require(W.shape(0) % window.groups == 0, op,
          ": expected the first axis of W to be a multiple of ", window.groups, " groups, got ",
          W.shape());
}

void check_images(const char* op, const Variable& x, const Variable& W) {
  const Shape &images = x.shape(op), &filters = W.shape(op);
  require(images.size() == 4 && filters.size() == 4, op, ": expected x and W with 4 axes, got ",
          images, " and ", filters);
}

// b in a dtype that kernels take beside x: that of x or that of weights.
Bias checked_bias(const char* op, const Bias& b, const Variable& x, const Variable& W,
                  std::int64_t channels) {
  if (!b) return b;
  require_one_device(op, x.device(), b->device(op));
  const Dtype dtype = weight_dtype(x.dtype());
  const bool fits = b->dtype() == x.dtype() || are_compatible(b->dtype(), dtype);
  require(b->dtype() != W.dtype() || fits, op, ": expected x of dtype ", W.dtype(),
          " as W and b, got ", x.dtype());
  require(fits && b->shape() == Shape{channels}, op, ": expected b of shape ", Shape{channels},
          " and dtype ", dtype, ", got ", b->shape(), " and ", b->dtype());
  return b->dtype() == x.dtype() ? b : Bias(cast(*b, dtype));
}

// W in the dtype that kernels expect for x. The result has the dtype of x.
Variable cast_weights(const Variable& x, const Variable& W) {
  return cast(W, weight_dtype(x.dtype()));
}

Variable convolve(const char* op, const Variable& input, const Variable& W, const Bias& b,
                  const Window& window, bool cover_all) {
  check(op, input, W, window);
  const Variable x = as_activation(input);
  const std::int64_t channels = saturated_product(W.shape(1), window.groups);
  require(x.shape(1) == channels, op, ": expected x with ", channels, " channels for W of shape ",
          W.shape(), " and ", window.groups, " groups, got ", x.shape());
  const Bias bias = checked_bias(op, b, x, W, W.shape(0));
  check_padded(op, x.shape(), window.pad, x.dtype(), x.device());
  Dims extents;
  for (int axis = 0; axis < x.ndim() - 2; ++axis) {
    extents.push_back(window.extent(x.shape(2 + axis), W.shape(2 + axis), axis, cover_all));
    require(extents[axis] > 0, op, ": expected x no smaller than the kernel, got ", x.shape(),
            " for W of shape ", W.shape());
  }
  const Variable weights = cast_weights(x, W);
  const std::int64_t pixels = saturated_product(x.shape(0), extents.product());
  return forward(x, weights, bias, window, extents,
                 packed_weight_cache(weights, pixels, backprop_enabled()));
}

Variable deconvolve(const char* op, const Variable& input, const Variable& W, const Bias& b,
                    const Window& window, const std::optional<Dims>& outsize) {
  check(op, input, W, window);
  const Variable x = as_activation(input);
  require(x.shape(1) == W.shape(0), op, ": expected x with ", W.shape(0),
          " channels for W of shape ", W.shape(), ", got ", x.shape());
  require<std::invalid_argument>(!outsize || outsize->size() == x.ndim() - 2, op,
                                 ": expected an outsize of ", x.ndim() - 2, " axes");
  const std::int64_t channels = saturated_product(W.shape(1), window.groups);
  const Bias bias = checked_bias(op, b, x, W, channels);
  Dims extents;
  for (int axis = 0; axis < x.ndim() - 2; ++axis) {
    const std::int64_t size = x.shape(2 + axis), kernel = W.shape(2 + axis);
    extents.push_back(outsize ? (*outsize)[axis] : window.transposed_extent(size, kernel, axis));
    require(extents[axis] > 0, op, ": expected x larger than its padding, got ", x.shape(),
            " for W of shape ", W.shape());
    require(window.extent(extents[axis], kernel, axis, false) <= size &&
                size <= window.extent(extents[axis], kernel, axis, true),
            op, ": expected an outsize whose convolution has extent ", size, ", got ",
            extents[axis]);
  }
  check_padded(op, image_shape(x.shape(0), channels, extents), window.pad, x.dtype(), x.device());
  const Variable weights = cast_weights(x, W);
  return input_grad(x, weights, bias, window, extents,
                    packed_weight_cache(weights, pixels_of(x), backprop_enabled()));
}

}  // namespace

// Pixels of few channels are joined to longer rows, which take less time than many short ones.
void add_bias(const Array& y, const Array& b) {
  constexpr std::int64_t kLongRow = 512;
  const std::int64_t channels = y.shape(1);
  if (y.size() == 0) return;
  const std::int64_t count = y.size() / channels;
  std::int64_t joined = 1;
  while (joined * channels < kLongRow && count % (2 * joined) == 0) joined *= 2;
  const Array pixels = channels_last_view(y);
  const Array rows = reshape_view(pixels, {count / joined, joined * channels});
  const Array row = contiguous(broadcast_view("bias", cast(b, y.dtype()), {joined, channels}));
  const Array all = broadcast_view("bias", reshape_view(row, {row.size()}), rows.shape());
  elementwise_kernels.on(y.device()).binary(Binary::add, 0, rows, all, rows);
}

void finish_image(const Array& y, const convolution::Epilogue& epilogue) {
  if (epilogue.bias.defined()) add_bias(y, epilogue.bias);
  if (epilogue.pass) epilogue.pass(0, y.size());
}

Variable convolution_2d(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                        bool cover_all) {
  check_images("convolution_2d", x, W);
  return convolve("convolution_2d", x, W, b, window, cover_all);
}

Variable deconvolution_2d(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                          const std::optional<Dims>& outsize) {
  check_images("deconvolution_2d", x, W);
  return deconvolve("deconvolution_2d", x, W, b, window, outsize);
}

Variable convolution_nd(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                        bool cover_all) {
  return convolve("convolution_nd", x, W, b, window, cover_all);
}

Variable deconvolution_nd(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                          const std::optional<Dims>& outsize) {
  return deconvolve("deconvolution_nd", x, W, b, window, outsize);
}

}  // namespace renga
