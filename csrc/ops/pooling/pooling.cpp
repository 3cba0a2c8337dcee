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

// Each is the other's gradient. They have names as averages, or as sums with a divisor of 1.
struct SumNames {
  const char *sum, *spread;
};
constexpr SumNames kAverage{"AveragePooling2D", "AveragePooling2DGrad"};
constexpr SumNames kUnpooling{"Unpooling2DGrad", "Unpooling2D"};

Variable sum(const SumNames& names, const Variable& x, const Array& y, const PoolingWindow& window,
             std::int64_t divisor);

Variable spread(const SumNames& names, const Variable& y, const Pair& extents,
                const PoolingWindow& window, std::int64_t divisor) {
  const Array x = empty_resized(y.array(), extents, y.dtype());
  pooling_kernels.on(x.device()).spread(y.array(), x, window, divisor);
  auto vjp_y = [names, extents = extents_of(y), window, divisor](const Variable& gx) {
    return sum(names, gx, empty_resized(gx.array(), extents, gx.dtype()), window, divisor);
  };
  return record(names.spread, x, {{y, vjp_y}});
}

Variable sum(const SumNames& names, const Variable& x, const Array& y, const PoolingWindow& window,
             std::int64_t divisor) {
  pooling_kernels.on(y.device()).sum(x.array(), y, window, divisor);
  auto vjp_x = [names, extents = extents_of(x), window, divisor](const Variable& gy) {
    return spread(names, gy, extents, window, divisor);
  };
  return record(names.sum, y, {{x, vjp_x}});
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
  return sum(kAverage, x, empty_output(x, window, false), window, window.area());
}

Variable unpooling_2d(const Variable& x, const PoolingWindow& window, const Dims& extents) {
  require(is_float(x.dtype()), "unpooling_2d: expected a float dtype, got ", x.dtype());
  require(x.ndim() == 4, "unpooling_2d: expected x with 4 axes, got ", x.shape());
  require(extents.size() == 2, "unpooling_2d: expected 2 extents, got ", extents);
  check_window("unpooling_2d", 2, Dims(window.stride), Dims(window.pad), {1, 1});
  for (int axis : {0, 1}) {
    const auto k = static_cast<std::size_t>(axis);
    const bool fits = window.ksize[k] > 0 && extents[axis] >= 0 &&
                      (x.shape(2 + axis) == window.extent(extents[axis], axis, false) ||
                       x.shape(2 + axis) == window.extent(extents[axis], axis, true));
    require(fits, "unpooling_2d: expected the pooling of an image of ", extents, ", got ",
            x.shape(), " for a window of ", Dims(window.ksize));
  }
  return spread(kUnpooling, x, {extents[0], extents[1]}, window, 1);
}

}  // namespace renga
