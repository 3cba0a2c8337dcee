// Pooling: shapes, forward and gradients. Its kernels are in cpu/.
#include "ops/pooling/pooling.h"

#include <limits>

#include "autograd/node.h"
#include "ops/shape/image.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<PoolingKernels> pooling_kernels{"pooling"};

namespace {

void check(const char* op, const Variable& x, const PoolingWindow& window, bool cover_all) {
  require(is_float(x.dtype()), op, ": expected a float dtype, got ", x.dtype());
  require(x.ndim() == 4, op, ": expected x with 4 axes, got ", x.shape());
  const Dims ksize(window.ksize), pad(window.pad);
  require<std::invalid_argument>(ksize[0] > 0 && ksize[1] > 0, op, ": expected ksize > 0, got ",
                                 ksize);
  check_window(op, 2, Dims(window.stride), pad, {1, 1});
  // Indices in a window have 32 bits.
  require<std::invalid_argument>(
      saturated_product(ksize[0], ksize[1]) <= std::numeric_limits<std::int32_t>::max(), op,
      ": expected a window of less than 2^31 elements, got ksize ", ksize);
  check_padded(op, x.shape(), pad, x.dtype(), x.device());
  for (int axis : {0, 1}) {
    require(window.extent(x.shape(2 + axis), axis, cover_all) > 0, op,
            ": expected x no smaller than the window, got ", x.shape(), " for a window of ",
            window.ksize[0], " x ", window.ksize[1]);
  }
}

// An image of other extents with the memory order of `like`.
Array empty_resized(const Array& like, const Pair& extents, Dtype dtype) {
  return empty_image(like, like.shape(1), Dims(extents), memory_order(like), dtype);
}

Array empty_output(const Variable& x, const PoolingWindow& window, bool cover_all) {
  return empty_resized(
      x.array(), {window.extent(x.shape(2), 0, cover_all), window.extent(x.shape(3), 1, cover_all)},
      x.dtype());
}

Pair extents_of(const Variable& x) { return {x.shape(2), x.shape(3)}; }

// Each is the other's gradient.
Variable gather(const Variable& x, const Array& indices, const PoolingWindow& window);
Variable scatter(const Variable& gy, const Array& indices, const PoolingWindow& window,
                 const Pair& extents);

Variable gather(const Variable& x, const Array& indices, const PoolingWindow& window) {
  const Array y = empty_like(indices, x.dtype());
  pooling_kernels.on(y.device()).gather(x.array(), indices, y, window);
  auto vjp_x = [indices, window, extents = extents_of(x)](const Variable& gy) {
    return scatter(gy, indices, window, extents);
  };
  return record("MaxPoolingNDWithIndexes", y, {{x, vjp_x}});
}

Variable scatter(const Variable& gy, const Array& indices, const PoolingWindow& window,
                 const Pair& extents) {
  const Array gx = empty_resized(indices, extents, gy.dtype());
  pooling_kernels.on(gx.device()).scatter(gy.array(), indices, gx, window);
  auto vjp_gy = [indices, window](const Variable& ggx) { return gather(ggx, indices, window); };
  return record("MaxPoolingNDGrad", gx, {{gy, vjp_gy}});
}

Variable average(const Variable& x, const Array& y, const PoolingWindow& window);
Variable average_grad(const Variable& gy, const Array& gx, const PoolingWindow& window);

Variable average(const Variable& x, const Array& y, const PoolingWindow& window) {
  pooling_kernels.on(y.device()).average(x.array(), y, window);
  auto vjp_x = [extents = extents_of(x), window](const Variable& gy) {
    return average_grad(gy, empty_resized(gy.array(), extents, gy.dtype()), window);
  };
  return record("AveragePooling2D", y, {{x, vjp_x}});
}

Variable average_grad(const Variable& gy, const Array& gx, const PoolingWindow& window) {
  pooling_kernels.on(gx.device()).average_grad(gy.array(), gx, window);
  auto vjp_gy = [extents = extents_of(gy), window](const Variable& ggx) {
    return average(ggx, empty_resized(ggx.array(), extents, ggx.dtype()), window);
  };
  return record("AveragePooling2DGrad", gx, {{gy, vjp_gy}});
}

}  // namespace

std::tuple<Variable, Array> max_pooling_2d_with_indices(const Variable& x,
                                                        const PoolingWindow& window,
                                                        bool cover_all) {
  check("max_pooling_2d", x, window, cover_all);
  const Array y = empty_output(x, window, cover_all);
  const Array indices = empty_like(y, window.area() < 256 ? Dtype::uint8 : Dtype::int32);
  pooling_kernels.on(y.device()).max(x.array(), y, indices, window);
  auto vjp_x = [indices, window, extents = extents_of(x)](const Variable& gy) {
    return scatter(gy, indices, window, extents);
  };
  return {record("MaxPoolingND", y, {{x, vjp_x}}), indices};
}

Variable max_pooling_2d(const Variable& x, const PoolingWindow& window, bool cover_all) {
  return std::get<0>(max_pooling_2d_with_indices(x, window, cover_all));
}

Variable average_pooling_2d(const Variable& x, const PoolingWindow& window) {
  check("average_pooling_2d", x, window, false);
  return average(x, empty_output(x, window, false), window);
}

}  // namespace renga
