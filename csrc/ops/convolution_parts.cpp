#include "ops/convolution_parts.h"

#include "ops/convolution.h"
#include "tensor/views.h"

namespace renga {
namespace {

// As Python sees it.
Array shown(const Array& x) { return x.dtype() == Dtype::bfloat16 ? cast(x, Dtype::float32) : x; }

void check(const char* op, const Array& image, const Array& W, const Window& window,
           const Dims& extents) {
  const int axes = image.ndim() - 2;
  require(axes > 0 && W.ndim() == image.ndim() && W.dtype() == image.dtype(), op,
          ": expected an image and filters with the same number of axes and dtype, got ",
          image.dtype(), " ", image.shape(), " and ", W.dtype(), " ", W.shape());
  require<std::invalid_argument>(extents.size() == axes && window.stride.size() == axes &&
                                     window.pad.size() == axes && window.dilate.size() == axes,
                                 op, ": expected options of ", axes, " axes, got extents ", extents,
                                 " and pad ", window.pad);
}

void check_bias(const char* op, const std::optional<Array>& b, const Array& y) {
  require(!b || b->shape() == Shape{y.shape(1)}, op, ": expected b of ", y.shape(1),
          " channels, got ", b ? b->shape() : Shape{});
}

}  // namespace

Array convolution_part(const Array& image, const Array& filters, const std::optional<Array>& b,
                       const Window& window, const Dims& extents) {
  const Array x = shown(image), W = shown(filters);
  check("convolution_part", x, W, window, extents);
  const Array y = empty_image(W.shape(0), extents, x);
  check_bias("convolution_part", b, y);
  convolution_kernels.on(y.device()).forward(x, W, y, window, b.value_or(Array()), nullptr);
  return y;
}

Array convolution_part_input_grad(const Array& grad, const Array& filters,
                                  const std::optional<Array>& b, const Window& window,
                                  const Dims& extents) {
  const Array gy = shown(grad), W = shown(filters);
  check("convolution_part_input_grad", gy, W, window, extents);
  const Array gx = empty_image(W.shape(1) * window.groups, extents, gy);
  check_bias("convolution_part_input_grad", b, gx);
  convolution_kernels.on(gx.device()).input_grad(gy, W, gx, window, b.value_or(Array()), nullptr);
  return gx;
}

Array convolution_part_weight_grad(const Array& grad, const Array& image, const Window& window,
                                   const Dims& kernel) {
  const Array gy = shown(grad), x = shown(image);
  check("convolution_part_weight_grad", gy, x, window, kernel);
  Shape shape{gy.shape(1), x.shape(1) / window.groups};
  for (std::int64_t extent : kernel) shape.push_back(extent);
  const Array gW = empty(shape, x.dtype(), x.device());
  convolution_kernels.on(gW.device()).weight_grad(gy, x, gW, window);
  return gW;
}

}  // namespace renga
