#include "ops/reduction/reduction.h"

#include <limits>

#include "autograd/node.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/math.h"
#include "ops/reduction/scan.h"
#include "ops/reduction/softmax.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<ReductionKernels> reduction_kernels{"reduction"};

namespace {

Axes axes_of(const char* op, const std::optional<Axes>& axes, int ndim) {
  if (axes) return normalize_axes(op, *axes, ndim);
  Axes all;
  for (int i = 0; i < ndim; ++i) all.push_back(i);
  return all;
}

Shape keepdims_shape(const Shape& shape, const Axes& axes) {
  Shape reduced = shape;
  for (std::int64_t a : axes) reduced[static_cast<int>(a)] = 1;
  return reduced;
}

Shape dropped_shape(const Shape& shape, const Axes& axes) {
  Shape dropped;
  for (int i = 0; i < shape.size(); ++i) {
    if (!axes.contains(i)) dropped.push_back(shape[i]);
  }
  return dropped;
}

// The reduced array without its axes of extent 1, or with them if `keepdims`.
Array remove_axes(const Array& y, const Axes& axes, bool keepdims) {
  if (keepdims) return y;
  return reshape_view(contiguous(y), dropped_shape(y.shape(), axes));
}

// gy broadcast to x's shape, with or without the reduced axes.
Variable broadcast_gradient(const Variable& gy, const Shape& shape, const Axes& axes) {
  return broadcast_to(reshape(gy, keepdims_shape(shape, axes)), shape);
}

Variable extreme(const char* op, const char* label, Reduction map, const Variable& x,
                 const std::optional<Axes>& over, bool keepdims) {
  require_floats(op, x.array(op));
  const Axes axes = axes_of(op, over, x.ndim());
  for (std::int64_t a : axes) {
    require<std::invalid_argument>(x.shape(static_cast<int>(a)) > 0, op,
                                   ": expected at least one element, got shape ", x.shape());
  }
  const Array y = reduce(map, x.array(), axes);
  // No element is beyond the extreme one; those that reach it are equal to it, and all get the full
  // gradient, as in Chainer.
  const Binary reaches = map == Reduction::max ? Binary::greater_equal : Binary::less_equal;
  auto vjp_x = [x, y, axes, op, reaches](const Variable& gy) {
    const Variable is_extreme(apply(op, reaches, x.array(), y));
    return multiply(broadcast_gradient(gy, x.shape(), axes), is_extreme);
  };
  return record(label, remove_axes(y, axes, keepdims), {{x, vjp_x}});
}

// x with several axes joined to one, the last, and that axis.
std::pair<Array, int> joined(const Array& x, const Axes& axes) {
  if (axes.size() == 1) return {x, static_cast<int>(axes[0])};
  Axes order;
  Shape lines;
  for (int i = 0; i < x.ndim(); ++i) {
    if (axes.contains(i)) continue;
    order.push_back(i);
    lines.push_back(x.shape(i));
  }
  std::int64_t length = 1;
  for (std::int64_t a : axes) {
    order.push_back(a);
    length *= x.shape(static_cast<int>(a));
  }
  lines.push_back(length);
  return {reshape_view(contiguous(transpose_view(x, order)), lines), lines.size() - 1};
}

Shape without(const Array& x, int axis) {
  Shape shape = x.shape();
  shape.erase(axis);
  return shape;
}

Array arg(const char* op, Reduction map, const Variable& x, std::optional<std::int64_t> over) {
  require_floats(op, x.array(op));
  const Variable rows = over ? x : reshape(x, {x.size()});
  const int axis = normalize_axis(op, over.value_or(0), rows.ndim());
  require<std::invalid_argument>(rows.shape(axis) > 0, op,
                                 ": expected at least one element, got shape ", x.shape());
  require<std::invalid_argument>(rows.shape(axis) <= std::numeric_limits<std::int32_t>::max(), op,
                                 ": expected fewer than 2^31 elements, got shape ", x.shape());
  Shape shape = rows.shape();
  shape.erase(axis);
  Array y = empty(shape, Dtype::int32, x.device());
  reduction_kernels.on(x.device()).arg(map, rows.array(), axis, y);
  return y;
}

}  // namespace

Array reduce(Reduction map, const Array& x, const Axes& axes) {
  require(x.dtype() != Dtype::bool_ || map >= Reduction::max, "sum: expected numbers, got bool");
  const bool widened = x.dtype() == Dtype::bfloat16 && map < Reduction::max;
  Array y =
      empty(keepdims_shape(x.shape(), axes), widened ? Dtype::float32 : x.dtype(), x.device());
  reduction_kernels.on(x.device()).reduce(map, x, axes, y);
  return y;
}

Variable sum(const Variable& x, const std::optional<Axes>& over, bool keepdims) {
  require_floats("sum", x.array());
  const Axes axes = axes_of("sum", over, x.ndim());
  const Array y = remove_axes(reduce(Reduction::sum, x.array(), axes), axes, keepdims);
  return record("Sum", y, {{x, [shape = x.shape(), axes](const Variable& gy) {
                              return broadcast_gradient(gy, shape, axes);
                            }}});
}

Variable sum_of_squares(const Variable& x, const std::optional<Axes>& over, bool keepdims) {
  require_floats("sum_of_squares", x.array());
  const Axes axes = axes_of("sum_of_squares", over, x.ndim());
  const Array y = remove_axes(reduce(Reduction::sum_of_squares, x.array(), axes), axes, keepdims);
  auto vjp_x = [x, axes](const Variable& gy) {
    return multiply(x, broadcast_gradient(multiply(gy, 2), x.shape(), axes));
  };
  return record("SumOfSquares", y, {{x, vjp_x}});
}

Variable sum_to(const Variable& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  require(broadcast_shapes("sum_to", shape, x.shape()) == x.shape(),
          "sum_to: expected a shape that broadcasts to ", x.shape(), ", got ", shape);
  const int shift = x.ndim() - shape.size();
  Axes axes;
  for (int i = 0; i < x.ndim(); ++i) {
    if (i < shift || (shape[i - shift] == 1 && x.shape(i) != 1)) axes.push_back(i);
  }
  return reshape(sum(x, axes, true), shape);
}

Variable prod(const Variable& x, const std::optional<Axes>& over, bool keepdims) {
  require_floats("prod", x.array());
  const Axes axes = axes_of("prod", over, x.ndim());
  const Array y = remove_axes(reduce(Reduction::prod, x.array(), axes), axes, keepdims);
  auto vjp_x = [x, axes](const Variable& gy) {
    if (axes.size() == 1) {
      const int axis = static_cast<int>(axes[0]);
      Shape one = x.shape();
      one[axis] = 1;
      return product_of_others(x, axis, reshape(gy, one));
    }
    // The reduced axes are moved to the end and joined, and the result is moved back.
    Axes order;
    for (int i = 0; i < x.ndim(); ++i) {
      if (!axes.contains(i)) order.push_back(i);
    }
    for (std::int64_t a : axes) order.push_back(a);
    Shape rows = dropped_shape(x.shape(), axes), one = rows;
    one.push_back(1);
    rows.push_back(x.size() == 0 ? 0 : x.size() / rows.product());
    const Variable moved = transpose(x, order);
    const Variable gx = product_of_others(reshape(moved, rows), rows.size() - 1, reshape(gy, one));
    Axes inverse = order;
    for (int i = 0; i < order.size(); ++i) inverse[static_cast<int>(order[i])] = i;
    return transpose(reshape(gx, moved.shape()), inverse);
  };
  return record("Prod", y, {{x, vjp_x}});
}

Variable max(const Variable& x, const std::optional<Axes>& axes, bool keepdims) {
  return extreme("max", "Max", Reduction::max, x, axes, keepdims);
}

Variable min(const Variable& x, const std::optional<Axes>& axes, bool keepdims) {
  return extreme("min", "Min", Reduction::min, x, axes, keepdims);
}

Variable logsumexp(const Variable& x, const std::optional<Axes>& over) {
  require_floats("logsumexp", x.array());
  const Axes axes = axes_of("logsumexp", over, x.ndim());
  const Dtype dtype = x.dtype() == Dtype::bfloat16 ? Dtype::float32 : x.dtype();
  const Array y = empty(dropped_shape(x.shape(), axes), dtype, x.device());
  const auto [lines, axis] = joined(x.array(), axes);
  softmax_kernels.on(y.device()).logsumexp(lines, axis, reshape_view(y, without(lines, axis)));
  auto vjp_x = [x, y = Saved(y), axes](const Variable& gy, GradientSink& to) {
    const Variable weight = exp(subtract(x, broadcast_gradient(y.of(to.node()), x.shape(), axes)));
    return multiply(broadcast_gradient(gy, x.shape(), axes), weight);
  };
  return record("LogSumExp", y, {{x, vjp_x}});
}

Variable argmax(const Variable& x, std::optional<std::int64_t> axis) {
  return Variable(arg("argmax", Reduction::max, x, axis));
}

Variable argmin(const Variable& x, std::optional<std::int64_t> axis) {
  return Variable(arg("argmin", Reduction::min, x, axis));
}

}  // namespace renga
