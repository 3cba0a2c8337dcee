// Convolution: shapes, forward and gradients. Its kernels are in convolution.cpu.cpp.
#include "ops/convolution.h"

#include <algorithm>
#include <limits>

#include "autograd/gradient_buffer.h"
#include "autograd/node.h"
#include "ops/elementwise.h"
#include "ops/manipulation.h"
#include "ops/precision.h"
#include "ops/reduction.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<ConvolutionKernels> convolution_kernels{"convolution"};

namespace {

using Bias = std::optional<Variable>;

// Three operations, linear in both operands, of which each is the gradient of the others. Extents
// that strides leave open are given: those of the result. There are no forms on the way back, after
// which W is about to change.
Variable forward(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                 const Dims& extents, const Ref<FilterForms>& forms = nullptr);
Variable input_grad(const Variable& gy, const Variable& W, const Bias& b, const Window& window,
                    const Dims& extents, const Ref<FilterForms>& forms = nullptr);
// `image` is x's array, or the same in another order of memory.
Variable weight_grad(const Variable& gy, const Variable& x, const Array& image,
                     const Window& window, const Dims& kernel);

// The dtype of filters for images of this one.
Dtype filter_dtype(Dtype images) { return images == Dtype::bfloat16 ? Dtype::float32 : images; }

// Those of all axes but the first two.
Dims extents_of(const Variable& x) {
  return Dims(std::span(x.shape().begin() + 2, x.shape().end()));
}

Shape joined(std::int64_t first, std::int64_t second, const Dims& rest) {
  Shape shape{first, second};
  for (std::int64_t extent : rest) shape.push_back(extent);
  return shape;
}

// All axes but the channels', and those last if wanted.
Axes image_axes(int ndim, bool channels_last) {
  Axes axes{0};
  for (int axis = 2; axis < ndim; ++axis) axes.push_back(axis);
  if (channels_last) axes.push_back(1);
  return axes;
}

const char* name_for(const Variable& x, const char* of_images, const char* of_any) {
  return x.ndim() == 4 ? of_images : of_any;
}

Array array_of(const Bias& b) { return b ? b->array() : Array(); }

Variable finish(const char* name, const Array& y, const Bias& b, Edge to_x, Edge to_W) {
  if (!b) return record(name, y, {std::move(to_x), std::move(to_W)});
  auto to_b = [](const Variable& gy) { return sum(gy, image_axes(gy.ndim(), false)); };
  return record(name, y, {std::move(to_x), std::move(to_W), {*b, to_b}});
}

// A copy of x as the CPU's kernels want images, so that each pass does not make one for itself;
// undefined where x is so.
Array reordered(const Array& x) {
  const bool takes = x.dtype() == Dtype::float32 || x.dtype() == Dtype::bfloat16;
  if (x.ndim() != 4 || !takes || x.device() != Device{}) return Array();
  const Axes last = image_axes(4, true);
  if (transpose_view(x, last).is_contiguous()) return Array();
  const Array image = empty_in_order(x.shape(), last, x.dtype());
  copy(x, image);
  return image;
}

Variable forward(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                 const Dims& extents, const Ref<FilterForms>& forms) {
  const Array y = empty_image(W.shape(0), extents, x.array());
  const Array image = reordered(x.array());
  convolution_kernels.on(x.device())
      .forward(image.defined() ? image : x.array(), W.array(), y, window, array_of(b), forms.get());
  auto to_x = [W, window, extents = extents_of(x)](const Variable& gy) {
    return input_grad(gy, W, {}, window, extents);
  };
  auto to_W = [x, image, window, kernel = extents_of(W)](const Variable& gy) {
    return weight_grad(gy, x, image.defined() ? image : x.array(), window, kernel);
  };
  return finish(name_for(x, "Convolution2DFunction", "ConvolutionND"), y, b, {x, to_x}, {W, to_W});
}

Variable input_grad(const Variable& gy, const Variable& W, const Bias& b, const Window& window,
                    const Dims& extents, const Ref<FilterForms>& forms) {
  const Array gx = empty_image(W.shape(1) * window.groups, extents, gy.array());
  convolution_kernels.on(gy.device())
      .input_grad(gy.array(), W.array(), gx, window, array_of(b), forms.get());
  auto to_gy = [W, window, extents = extents_of(gy)](const Variable& ggx) {
    return forward(ggx, W, {}, window, extents);
  };
  auto to_W = [gy, window, kernel = extents_of(W)](const Variable& ggx) {
    return weight_grad(gy, ggx, ggx.array(), window, kernel);
  };
  return finish(name_for(gy, "Deconvolution2DFunction", "DeconvolutionND"), gx, b, {gy, to_gy},
                {W, to_W});
}

Variable weight_grad(const Variable& gy, const Variable& x, const Array& image,
                     const Window& window, const Dims& kernel) {
  const Array gW = empty_gradient(joined(gy.shape(1), x.shape(1) / window.groups, kernel),
                                  filter_dtype(x.dtype()), x.device());
  convolution_kernels.on(x.device()).weight_grad(cast(gy.array(), x.dtype()), image, gW, window);
  auto to_gy = [x, window, extents = extents_of(gy)](const Variable& ggW) {
    return forward(x, ggW, {}, window, extents);
  };
  auto to_x = [gy, window, extents = extents_of(x)](const Variable& ggW) {
    return input_grad(gy, ggW, {}, window, extents);
  };
  return record(name_for(x, "Convolution2DGradW", "ConvolutionNDGradW"), gW,
                {{gy, to_gy}, {x, to_x}});
}

void check(const char* op, const Variable& x, const Variable& W, const Window& window) {
  require(is_float(x.dtype()) && is_float(W.dtype()), op,
          ": expected x and W of a float dtype, got ", x.dtype(), " and ", W.dtype());
  require(x.ndim() > 2 && W.ndim() == x.ndim(), op,
          ": expected x and W with the same number of axes, 3 or more, got ", x.shape(), " and ",
          W.shape());
  const int axes = x.ndim() - 2;
  check_window(op, axes, window.stride, window.pad, window.dilate);
  const bool has_taps = std::all_of(W.shape().begin() + 2, W.shape().end(), [](std::int64_t k) {
    return k > 0 && k <= std::numeric_limits<std::int32_t>::max();
  });
  require(has_taps, op,
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
  require(x.ndim() == 4 && W.ndim() == 4, op, ": expected x and W with 4 axes, got ", x.shape(),
          " and ", W.shape());
}

void check_bias(const char* op, const Bias& b, const Variable& x, const Variable& W,
                std::int64_t channels) {
  if (!b) return;
  const Dtype dtype = filter_dtype(x.dtype());
  require(b->dtype() != W.dtype() || b->dtype() == x.dtype() || b->dtype() == dtype, op,
          ": expected x of dtype ", W.dtype(), " as W and b, got ", x.dtype());
  require((b->dtype() == x.dtype() || b->dtype() == dtype) && b->shape() == Shape{channels}, op,
          ": expected b of shape ", Shape{channels}, " and dtype ", dtype, ", got ", b->shape(),
          " and ", b->dtype());
}

// W as the kernels want it. The result has the dtype of the images.
Variable for_images(const Variable& x, const Variable& W) {
  return cast(W, filter_dtype(x.dtype()));
}

Variable convolution(const char* op, const Variable& given, const Variable& W, const Bias& b,
                     const Window& window, bool cover_all) {
  check(op, given, W, window);
  const Variable x = as_activation(given);
  const std::int64_t channels = saturated_product(W.shape(1), window.groups);
  require(x.shape(1) == channels, op, ": expected x with ", channels, " channels for W of shape ",
          W.shape(), " and ", window.groups, " groups, got ", x.shape());
  check_bias(op, b, x, W, W.shape(0));
  check_padded(op, x.shape(), window.pad, x.dtype(), x.device());
  Dims extents;
  for (int axis = 0; axis < x.ndim() - 2; ++axis) {
    extents.push_back(window.extent(x.shape(2 + axis), W.shape(2 + axis), axis, cover_all));
    require(extents[axis] > 0, op, ": expected x no smaller than the kernel, got ", x.shape(),
            " for W of shape ", W.shape());
  }
  const Variable filters = for_images(x, W);
  return forward(x, filters, b, window, extents, filter_forms(filters));
}

Variable deconvolution(const char* op, const Variable& given, const Variable& W, const Bias& b,
                       const Window& window, const std::optional<Dims>& outsize) {
  check(op, given, W, window);
  const Variable x = as_activation(given);
  require(x.shape(1) == W.shape(0), op, ": expected x with ", W.shape(0),
          " channels for W of shape ", W.shape(), ", got ", x.shape());
  require<std::invalid_argument>(!outsize || outsize->size() == x.ndim() - 2, op,
                                 ": expected an outsize of ", x.ndim() - 2, " axes");
  const std::int64_t channels = saturated_product(W.shape(1), window.groups);
  check_bias(op, b, x, W, channels);
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
  check_padded(op, joined(x.shape(0), channels, extents), window.pad, x.dtype(), x.device());
  const Variable filters = for_images(x, W);
  return input_grad(x, filters, b, window, extents, filter_forms(filters));
}

}  // namespace

Array empty_image(std::int64_t channels, const Dims& extents, const Array& like) {
  return empty_in_order(joined(like.shape(0), channels, extents), image_axes(like.ndim(), true),
                        like.dtype(), like.device());
}

// Several pixels of few channels go together, as one long row takes less time than many short ones.
void add_bias(const Array& y, const Array& b) {
  constexpr std::int64_t kRow = 512;
  const std::int64_t channels = y.shape(1);
  if (y.size() == 0) return;
  const std::int64_t count = y.size() / channels;
  std::int64_t together = 1;
  while (together * channels < kRow && count % (2 * together) == 0) together *= 2;
  const Array pixels = transpose_view(y, image_axes(y.ndim(), true));
  const Array rows = reshape_view(pixels, {count / together, together * channels});
  const Array row = contiguous(broadcast_view("bias", cast(b, y.dtype()), {together, channels}));
  const Array all = broadcast_view("bias", reshape_view(row, {row.size()}), rows.shape());
  elementwise_kernels.on(y.device()).binary(Binary::add, 0, rows, all, rows);
}

Variable convolution_2d(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                        bool cover_all) {
  check_images("convolution_2d", x, W);
  return convolution("convolution_2d", x, W, b, window, cover_all);
}

Variable deconvolution_2d(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                          const std::optional<Dims>& outsize) {
  check_images("deconvolution_2d", x, W);
  return deconvolution("deconvolution_2d", x, W, b, window, outsize);
}

Variable convolution_nd(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                        bool cover_all) {
  return convolution("convolution_nd", x, W, b, window, cover_all);
}

Variable deconvolution_nd(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                          const std::optional<Dims>& outsize) {
  return deconvolution("deconvolution_nd", x, W, b, window, outsize);
}

}  // namespace renga
