#include "ops/convolution/block_convolution.h"

#include "ops/convolution/problem.h"
#include "ops/shape/image.h"
#include "ops/shape/one_device.h"
#include "tensor/views.h"

namespace renga {
namespace {

using convolution::compute, convolution::Pass;

// bfloat16 is computed in float32, which Python can see.
Array as_visible(const Array& x) {
  return x.dtype() == Dtype::bfloat16 ? cast(x, Dtype::float32) : x;
}

void check(const char* op, const Array& image, const Array& W, const Window& window,
           const Dims& extents) {
  const int axes = image.ndim() - 2;
  require_one_device(op, image.device(op), W.device(op));
  require(axes > 0 && W.ndim() == image.ndim() && W.dtype() == image.dtype(), op,
          ": expected an image and filters with the same number of axes and dtype, got ",
          image.dtype(), " ", image.shape(), " and ", W.dtype(), " ", W.shape());
  require<std::invalid_argument>(extents.size() == axes && window.stride.size() == axes &&
                                     window.pad.size() == axes && window.dilate.size() == axes,
                                 op, ": expected options of ", axes, " axes, got extents ", extents,
                                 " and pad ", window.pad);
  check_window(op, axes, window.stride, window.pad, window.dilate);
  for (std::int64_t extent : extents) {
    require<std::invalid_argument>(extent > 0, op, ": expected extents above 0, got ", extents);
  }
}

// Checks the groups for weights (O, I / groups, ...) and images of `inputs` and `outputs` channels.
void check_groups(const char* op, const Window& window, std::int64_t inputs, std::int64_t outputs) {
  const std::int64_t groups = window.groups;
  require<std::invalid_argument>(groups > 0, op, ": expected groups above 0, got ", groups);
  require(inputs % groups == 0 && outputs % groups == 0, op, ": expected ", groups,
          " groups to divide the channels, got ", inputs, " and ", outputs);
}

void check_bias(const char* op, const std::optional<Array>& b, const Array& y) {
  if (b) require_one_device(op, y.device(), b->device(op));
  require(!b || b->shape() == Shape{y.shape(1)}, op, ": expected b of ", y.shape(1),
          " channels, got ", b ? b->shape() : Shape{});
}

}  // namespace

Array block_convolution(const Array& image, const Array& weights, const std::optional<Array>& b,
                        const Window& window, const Dims& extents) {
  const Array x = as_visible(image), W = as_visible(weights);
  check("block_convolution", x, W, window, extents);
  check_groups("block_convolution", window, x.shape(1), W.shape(0));
  require(x.shape(1) / window.groups == W.shape(1), "block_convolution: expected filters of ",
          x.shape(1) / window.groups, " channels, got ", W.shape());
  const Array y = empty_channels_last(x, W.shape(0), extents);
  check_bias("block_convolution", b, y);
  compute({Pass::forward, x, W, y, window}, {b.value_or(Array())});
  return y;
}

Array block_convolution_input_grad(const Array& grad, const Array& weights,
                                   const std::optional<Array>& b, const Window& window,
                                   const Dims& extents) {
  const Array gy = as_visible(grad), W = as_visible(weights);
  check("block_convolution_input_grad", gy, W, window, extents);
  check_groups("block_convolution_input_grad", window, 0, W.shape(0));
  require(gy.shape(1) == W.shape(0), "block_convolution_input_grad: expected ", W.shape(0),
          " channels, got ", gy.shape());
  const Array gx = empty_channels_last(gy, W.shape(1) * window.groups, extents);
  check_bias("block_convolution_input_grad", b, gx);
  compute({Pass::input_grad, gx, W, gy, window}, {b.value_or(Array())});
  return gx;
}

Array block_convolution_weight_grad(const Array& grad, const Array& image, const Window& window,
                                    const Dims& kernel) {
  const Array gy = as_visible(grad), x = as_visible(image);
  check("block_convolution_weight_grad", gy, x, window, kernel);
  check_groups("block_convolution_weight_grad", window, x.shape(1), gy.shape(1));
  require(gy.shape(0) == x.shape(0), "block_convolution_weight_grad: expected as many images, got ",
          gy.shape(), " and ", x.shape());
  const Array gW =
      empty(image_shape(gy.shape(1), x.shape(1) / window.groups, kernel), x.dtype(), x.device());
  compute({Pass::weight_grad, x, gW, gy, window}, {});
  return gW;
}

}  // namespace renga
