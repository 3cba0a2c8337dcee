// Convolution: shapes, forward and gradients. Its kernels are in convolution.cpu.cpp.
#include "ops/convolution.h"

#include "autograd/node.h"
#include "ops/elementwise.h"
#include "ops/manipulation.h"
#include "ops/reduction.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<ConvolutionKernels> convolution_kernels{"convolution"};

namespace {

using Bias = std::optional<Variable>;

// Three operations, linear in both operands, of which each is the gradient of the others. Extents
// that strides leave open are given: those of the result's rows and columns.
Variable forward(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                 const Pair& extents);
Variable input_grad(const Variable& gy, const Variable& W, const Bias& b, const Window& window,
                    const Pair& extents);
Variable weight_grad(const Variable& gy, const Variable& x, const Window& window,
                     const Pair& kernel);

Pair extents_of(const Variable& x) { return {x.shape(2), x.shape(3)}; }

// Images are written channels last: the kernels are fastest there, and so is what follows.
Array empty_image(std::int64_t channels, const Pair& extents, const Variable& like) {
  return empty_in_order({like.shape(0), channels, extents[0], extents[1]}, {0, 2, 3, 1},
                        like.dtype(), like.device());
}

// Adds b to every pixel of y, in place, and enters y into the graph.
Variable finish(const char* name, const Array& y, const Bias& b, Edge to_x, Edge to_W) {
  if (!b) return record(name, y, {std::move(to_x), std::move(to_W)});
  const Array column = reshape_view(contiguous(b->array()), {b->size(), 1, 1});
  elementwise_kernels.on(y.device())
      .binary(Binary::add, 0, y, broadcast_view(name, column, y.shape()), y);
  auto to_b = [](const Variable& gy) { return sum(gy, Axes{0, 2, 3}); };
  return record(name, y, {std::move(to_x), std::move(to_W), {*b, to_b}});
}

Variable forward(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                 const Pair& extents) {
  const Array y = empty_image(W.shape(0), extents, x);
  convolution_kernels.on(x.device()).forward(x.array(), W.array(), y, window);
  auto to_x = [W, window, extents = extents_of(x)](const Variable& gy) {
    return input_grad(gy, W, {}, window, extents);
  };
  auto to_W = [x, window, kernel = extents_of(W)](const Variable& gy) {
    return weight_grad(gy, x, window, kernel);
  };
  return finish("Convolution2DFunction", y, b, {x, to_x}, {W, to_W});
}

Variable input_grad(const Variable& gy, const Variable& W, const Bias& b, const Window& window,
                    const Pair& extents) {
  const Array gx = empty_image(W.shape(1) * window.groups, extents, gy);
  convolution_kernels.on(gy.device()).input_grad(gy.array(), W.array(), gx, window);
  auto to_gy = [W, window, extents = extents_of(gy)](const Variable& ggx) {
    return forward(ggx, W, {}, window, extents);
  };
  auto to_W = [gy, window, kernel = extents_of(W)](const Variable& ggx) {
    return weight_grad(gy, ggx, window, kernel);
  };
  return finish("Deconvolution2DFunction", gx, b, {gy, to_gy}, {W, to_W});
}

Variable weight_grad(const Variable& gy, const Variable& x, const Window& window,
                     const Pair& kernel) {
  const Array gW =
      empty({gy.shape(1), x.shape(1) / window.groups, kernel[0], kernel[1]}, x.dtype(), x.device());
  convolution_kernels.on(x.device()).weight_grad(gy.array(), x.array(), gW, window);
  auto to_gy = [x, window, extents = extents_of(gy)](const Variable& ggW) {
    return forward(x, ggW, {}, window, extents);
  };
  auto to_x = [gy, window, extents = extents_of(x)](const Variable& ggW) {
    return input_grad(gy, ggW, {}, window, extents);
  };
  return record("Convolution2DGradW", gW, {{gy, to_gy}, {x, to_x}});
}

void check(const char* op, const Variable& x, const Variable& W, const Window& window) {
  require(is_float(x.dtype()) && is_float(W.dtype()), op,
          ": expected x and W of a float dtype, got ", x.dtype(), " and ", W.dtype());
  require(x.ndim() == 4 && W.ndim() == 4, op, ": expected x and W with 4 axes, got ", x.shape(),
          " and ", W.shape());
  for (int axis : {0, 1}) {
    require<std::invalid_argument>(
        window.stride[axis] > 0 && window.dilate[axis] > 0 && window.pad[axis] >= 0, op,
        ": expected stride > 0, dilate > 0 and pad >= 0, got ", window.stride[axis], ", ",
        window.dilate[axis], " and ", window.pad[axis]);
  }
  require<std::invalid_argument>(window.groups > 0, op, ": expected groups > 0, got ",
                                 window.groups);
  require(W.shape(0) % window.groups == 0, op,
          ": expected the first axis of W to be a multiple of ", window.groups, " groups, got ",
          W.shape());
}

void check_bias(const char* op, const Bias& b, const Variable& x, std::int64_t channels) {
  if (!b) return;
  require(b->dtype() == x.dtype() && b->shape() == Shape{channels}, op, ": expected b of shape ",
          Shape{channels}, " and dtype ", x.dtype(), ", got ", b->shape(), " and ", b->dtype());
}

// W in the dtype of the images, which is the result's.
Variable as_dtype_of(const Variable& x, const Variable& W) {
  return W.dtype() == x.dtype() ? W : cast(W, x.dtype());
}

}  // namespace

Variable convolution_2d(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                        bool cover_all) {
  check("convolution_2d", x, W, window);
  require(x.shape(1) == W.shape(1) * window.groups, "convolution_2d: expected x with ",
          W.shape(1) * window.groups, " channels for W of shape ", W.shape(), " and ",
          window.groups, " groups, got ", x.shape());
  check_bias("convolution_2d", b, x, W.shape(0));
  Pair extents;
  for (int axis : {0, 1}) {
    extents[axis] = window.extent(x.shape(2 + axis), W.shape(2 + axis), axis, cover_all);
    require(extents[axis] > 0, "convolution_2d: expected x no smaller than the kernel, got ",
            x.shape(), " for W of shape ", W.shape());
  }
  return forward(x, as_dtype_of(x, W), b, window, extents);
}

Variable deconvolution_2d(const Variable& x, const Variable& W, const Bias& b, const Window& window,
                          const std::optional<Pair>& outsize) {
  check("deconvolution_2d", x, W, window);
  require(x.shape(1) == W.shape(0), "deconvolution_2d: expected x with ", W.shape(0),
          " channels for W of shape ", W.shape(), ", got ", x.shape());
  check_bias("deconvolution_2d", b, x, W.shape(1) * window.groups);
  Pair extents;
  for (int axis : {0, 1}) {
    const std::int64_t size = x.shape(2 + axis), kernel = W.shape(2 + axis);
    extents[axis] = outsize ? (*outsize)[axis] : window.transposed_extent(size, kernel, axis);
    require(extents[axis] > 0, "deconvolution_2d: expected x larger than its padding, got ",
            x.shape(), " for W of shape ", W.shape());
    require(window.extent(extents[axis], kernel, axis, false) <= size &&
                size <= window.extent(extents[axis], kernel, axis, true),
            "deconvolution_2d: expected an outsize whose convolution has extent ", size, ", got ",
            extents[axis]);
  }
  return input_grad(x, as_dtype_of(x, W), b, window, extents);
}

}  // namespace renga
