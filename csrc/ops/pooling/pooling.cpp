// Pooling: shapes, forward and gradients. Its kernels are in cpu/.
#include "ops/pooling/pooling.h"

#include <limits>

#include "autograd/node.h"
#include "ops/indexing/index_check.h"
#include "ops/shape/image.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<PoolingKernels> pooling_kernels{"pooling"};

namespace {

// Indices in a window have at most 32 bits.
void check_area(const char* op, const PoolingWindow& window) {
  require<std::invalid_argument>(saturated_product(window.ksize[0], window.ksize[1]) <=
                                     std::numeric_limits<std::int32_t>::max(),
                                 op, ": expected a window of less than 2^31 elements, got ksize ",
                                 Dims(window.ksize));
}

Dtype index_dtype(const PoolingWindow& window) {
  return window.area() < 256 ? Dtype::uint8 : Dtype::int32;
}

void check(const char* op, const Variable& x, const PoolingWindow& window, bool cover_all) {
  const Dtype dtype = x.dtype(op);
  require(is_float(dtype), op, ": expected a float dtype, got ", dtype);
  require(x.ndim() == 4, op, ": expected x with 4 axes, got ", x.shape());
  const Dims ksize(window.ksize), pad(window.pad);
  require<std::invalid_argument>(ksize[0] > 0 && ksize[1] > 0, op, ": expected ksize > 0, got ",
                                 ksize);
  check_window(op, 2, Dims(window.stride), pad, {1, 1});
  check_area(op, window);
  check_padded(op, x.shape(), pad, x.dtype(), x.device());
  for (int axis : {0, 1}) {
    require(window.extent(x.shape(2 + axis), axis, cover_all) > 0, op,
            ": expected x no smaller than the window, got ", x.shape(), " for a window of ",
            window.ksize[0], " x ", window.ksize[1]);
  }
}

// Whether x may be the pooling of an image of `extents`.
void check_pooled(const char* op, const Variable& x, const PoolingWindow& window,
                  const Dims& extents) {
  const Dtype dtype = x.dtype(op);
  require(is_float(dtype), op, ": expected a float dtype, got ", dtype);
  require(x.ndim() == 4, op, ": expected x with 4 axes, got ", x.shape());
  require(extents.size() == 2, op, ": expected 2 extents, got ", extents);
  check_window(op, 2, Dims(window.stride), Dims(window.pad), {1, 1});
  for (int axis : {0, 1}) {
    const auto k = static_cast<std::size_t>(axis);
    const std::int64_t least = window.extent(extents[axis], axis, false);
    const std::int64_t most = window.extent(extents[axis], axis, true);
    const bool fits = window.ksize[k] > 0 && extents[axis] >= 0 && least <= x.shape(2 + axis) &&
                      x.shape(2 + axis) <= most;
    require(fits, op, ": expected the pooling of an image of ", extents, ", got ", x.shape(),
            " for a window of ", Dims(window.ksize));
  }
}

// A Layout is what a gradient needs to know of an image: an image of one pixel does not show its
// order.
struct Layout {
  explicit Layout(const Variable& x) : Layout(x, {x.shape(2), x.shape(3)}) {}
  Layout(const Variable& like, const Pair& extents)
      : extents(extents), order(memory_order(like.array())) {}
  // An image like it, with the samples and channels of another one.
  Array empty(const Array& like) const {
    return empty_image(like, like.shape(1), Dims(extents), order, like.dtype());
  }

  Pair extents;
  Axes order;
};

Array empty_output(const Variable& x, const PoolingWindow& window, bool cover_all) {
  return Layout(x,
                {window.extent(x.shape(2), 0, cover_all), window.extent(x.shape(3), 1, cover_all)})
      .empty(x.array());
}

// Each is the other's gradient.
Variable gather(const Variable& x, const Array& indices, const PoolingWindow& window);
Variable scatter(const Variable& gy, const Array& indices, const PoolingWindow& window,
                 const Layout& layout);

Variable gather(const Variable& x, const Array& indices, const PoolingWindow& window) {
  const Array y = empty_like(indices, x.dtype());
  pooling_kernels.on(y.device()).gather(x.array(), indices, y, window);
  auto vjp_x = [indices, window, layout = Layout(x)](const Variable& gy) {
    return scatter(gy, indices, window, layout);
  };
  return record("MaxPoolingNDWithIndexes", y, {{x, vjp_x}});
}

Variable scatter(const Variable& gy, const Array& indices, const PoolingWindow& window,
                 const Layout& layout) {
  const Array gx = layout.empty(gy.array());
  pooling_kernels.on(gx.device()).scatter(gy.array(), indices, gx, window);
  auto vjp_gy = [indices, window](const Variable& ggx) { return gather(ggx, indices, window); };
  return record("MaxPoolingNDGrad", gx, {{gy, vjp_gy}});
}

// Indices from 0 to n - 1 in a dtype that has these, checked in the same pass if they are int64.
Array narrowed(const char* op, const Array& indices, std::int64_t n, Dtype dtype) {
  const Array narrow = empty(indices.shape(), dtype);
  bool all_allowed =
      indices.dtype() == Dtype::int64 && indices.device() == Device{} && indices.is_contiguous();
  const auto convert = [&]<class I>(I* __restrict to) {
    const auto* const __restrict from = indices.as<std::int64_t>();
    std::int64_t outside = 0;  // without an early end, so that the compiler can use vectors
    for (std::int64_t k = 0, size = indices.size(), end = n; k < size; ++k) {
      outside |= static_cast<std::int64_t>((from[k] < 0) | (from[k] >= end));
      to[k] = static_cast<I>(from[k]);
    }
    all_allowed = outside == 0;
  };
  if (all_allowed && dtype == Dtype::uint8) {
    convert(narrow.as<std::uint8_t>());
  } else if (all_allowed) {
    convert(narrow.as<std::int32_t>());
  }
  if (!all_allowed) copy(checked_indices(op, "indexes", indices, n, {}), narrow);
  return narrow;
}

// Sets indices of elements outside of an image of `extents` to that of no element.
template <class I>
void mark_outside(const Array& indices, const PoolingWindow& window, const Dims& extents) {
  const auto is_outside = [&](int axis, std::int64_t position, std::int64_t element) {
    const auto k = static_cast<std::size_t>(axis);
    const std::int64_t at = position * window.stride[k] - window.pad[k] + element;
    return at < 0 || at >= extents[axis];
  };
  const auto extends_outside = [&](int axis, std::int64_t position) {
    const std::int64_t last = window.ksize[static_cast<std::size_t>(axis)] - 1;
    return is_outside(axis, position, 0) || is_outside(axis, position, last);
  };
  const Strides& step = indices.strides();
  for (std::int64_t i = 0; i < indices.shape(2); ++i) {
    for (std::int64_t j = 0; j < indices.shape(3); ++j) {
      if (!extends_outside(0, i) && !extends_outside(1, j)) continue;
      std::byte* const pixel = indices.data() + i * step[2] + j * step[3];
      for (std::int64_t n = 0; n < indices.shape(0); ++n) {
        for (std::int64_t c = 0; c < indices.shape(1); ++c) {
          I& index = *reinterpret_cast<I*>(pixel + n * step[0] + c * step[1]);
          const auto element = static_cast<std::int64_t>(index);
          if (is_outside(0, i, element / window.ksize[1]) ||
              is_outside(1, j, element % window.ksize[1])) {
            index = static_cast<I>(-1);
          }
        }
      }
    }
  }
}

// Each is the other's gradient. They have names as averages, or as sums with a divisor of 1.
struct SumNames {
  const char *sum, *spread;
};
constexpr SumNames kAverage{"AveragePooling2D", "AveragePooling2DGrad"};
constexpr SumNames kUnpooling{"Unpooling2DGrad", "Unpooling2D"};

Variable sum(const SumNames& names, const Variable& x, const Array& y, const PoolingWindow& window,
             std::int64_t divisor);

Variable spread(const SumNames& names, const Variable& y, const Layout& layout,
                const PoolingWindow& window, std::int64_t divisor) {
  const Array x = layout.empty(y.array());
  pooling_kernels.on(x.device()).spread(y.array(), x, window, divisor);
  auto vjp_y = [names, layout = Layout(y), window, divisor](const Variable& gx) {
    return sum(names, gx, layout.empty(gx.array()), window, divisor);
  };
  return record(names.spread, x, {{y, vjp_y}});
}

Variable sum(const SumNames& names, const Variable& x, const Array& y, const PoolingWindow& window,
             std::int64_t divisor) {
  pooling_kernels.on(y.device()).sum(x.array(), y, window, divisor);
  auto vjp_x = [names, layout = Layout(x), window, divisor](const Variable& gy) {
    return spread(names, gy, layout, window, divisor);
  };
  return record(names.sum, y, {{x, vjp_x}});
}

}  // namespace

std::tuple<Variable, Array> max_pooling_2d_with_indices(const Variable& x,
                                                        const PoolingWindow& window,
                                                        bool cover_all) {
  check("max_pooling_2d", x, window, cover_all);
  const Array y = empty_output(x, window, cover_all);
  const Array indices = empty_like(y, index_dtype(window));
  pooling_kernels.on(y.device()).max(x.array(), y, indices, window);
  auto vjp_x = [indices, window, layout = Layout(x)](const Variable& gy) {
    return scatter(gy, indices, window, layout);
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
  check_pooled("unpooling_2d", x, window, extents);
  return spread(kUnpooling, x, {x, {extents[0], extents[1]}}, window, 1);
}

Variable upsampling_2d(const Variable& x, const Array& indices, const PoolingWindow& window,
                       const Dims& extents) {
  check_pooled("upsampling_2d", x, window, extents);
  require(indices.shape() == x.shape(), "upsampling_2d: expected indices of ", x.shape(), ", got ",
          indices.shape());
  check_area("upsampling_2d", window);
  const Array in_order = empty_in_order(x.shape(), memory_order(x.array()), index_dtype(window),
                                        x.device().is_meta() ? x.device() : Device{});
  if (!x.device().is_meta()) {
    copy(narrowed("upsampling_2d", indices, window.area(), in_order.dtype()), in_order);
    (window.area() < 256 ? mark_outside<std::uint8_t>
                         : mark_outside<std::int32_t>)(in_order, window, extents);
  }
  const Array inside = to_device(in_order, x.device());
  return scatter(x, inside, window, {x, {extents[0], extents[1]}});
}

}  // namespace renga
