#include "ops/shape/manipulation.h"

#include <utility>

#include "autograd/node.h"
#include "ops/reduction/reduction.h"
#include "tensor/copy.h"
#include "tensor/extents.h"
#include "tensor/parts.h"
#include "tensor/views.h"

namespace renga {
namespace {

Shape resolve(const Shape& shape, const Variable& x) {
  Shape full = shape;
  int open = -1;
  std::int64_t known = 1;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      require<std::invalid_argument>(open < 0, "reshape: expected at most one -1, got ", shape);
      open = i;
    } else {
      require<std::invalid_argument>(shape[i] >= 0,
                                     "reshape: expected extents of at least 0 and at most one -1, "
                                     "got ",
                                     shape);
      known = saturated_product(known, shape[i]);
    }
  }
  if (open >= 0 && known != 0) full[open] = x.size() / known;
  const bool fits = open < 0 ? known == x.size() : known != 0 && x.size() % known == 0;
  require(fits, "reshape: expected a shape of ", x.size(), " elements for ", x.shape(), ", got ",
          shape);
  if (x.size() == 0) checked_bytes("reshape", full, x.dtype());
  return full;
}

// Every range must be inside of the array: views are made of ranges without clipping.
void check_ranges(const char* op, const std::vector<Range>& ranges, const Shape& shape) {
  require(static_cast<int>(ranges.size()) == shape.size(), op, ": expected ", shape.size(),
          " ranges, got ", ranges.size());
  for (int i = 0; i < shape.size(); ++i) {
    const auto& [start, length, step] = ranges[static_cast<std::size_t>(i)];
    std::int64_t last = 0;
    const bool is_inside =
        length > 0 && start >= 0 && start < shape[i] && (length == 1 || step != 0) &&
        !__builtin_mul_overflow(length - 1, step, &last) &&
        !__builtin_add_overflow(start, last, &last) && last >= 0 && last < shape[i];
    require<std::out_of_range>(length == 0 || is_inside, op, ": expected elements of axis ", i,
                               " of ", shape, ", got ", length, " from ", start, " in steps of ",
                               step);
  }
}

Array view_of(const Array& x, const std::vector<Range>& ranges) {
  Array view = x;
  for (int i = 0; i < x.ndim(); ++i) {
    const Range& r = ranges[static_cast<std::size_t>(i)];
    view = slice_view(view, i, r.start, r.length, r.length > 1 ? r.step : 1);
  }
  return view;
}

// `view`, of the array of x or of another one of its shape, has no element twice. Its gradient is
// gy in the view, and zeros elsewhere.
template <class View>
Variable viewed(const char* name, const char* grad_name, const Variable& x, const View& view);

template <class View>
Variable viewed_grad(const char* name, const char* grad_name, const Variable& gy,
                     const Shape& shape, const View& view) {
  const Array gx = empty(shape, gy.dtype(), gy.device());
  if (gy.size() < gx.size()) fill(gx, 0);
  copy(gy.array(), view(gx));
  return record(grad_name, gx,
                {{gy, [=](const Variable& ggx) { return viewed(name, grad_name, ggx, view); }}});
}

template <class View>
Variable viewed(const char* name, const char* grad_name, const Variable& x, const View& view) {
  auto vjp_x = [=, shape = x.shape()](const Variable& gy) {
    return viewed_grad(name, grad_name, gy, shape, view);
  };
  return record(name, view(x.array()), {{x, vjp_x}});
}

std::vector<Range> full_ranges(const Shape& shape) {
  std::vector<Range> ranges;
  for (std::int64_t n : shape) ranges.push_back({0, n, 1});
  return ranges;
}

// The common dtype of arrays to be joined: float32 if some are bfloat16 and some float32.
Dtype require_common_dtype(const char* op, const std::vector<Variable>& xs) {
  require(!xs.empty(), op, ": expected at least one array, got none");
  Dtype dtype = xs[0].dtype(op);
  for (const Variable& x : xs) {
    const Dtype own = x.dtype(op);
    require(own == dtype || (is_activation(own) && is_activation(dtype)), op, ": expected xs[",
            &x - xs.data(), "] of dtype ", xs[0].dtype(), " as xs[0], got ", own);
    dtype = std::max(dtype, own);
    require(x.ndim() == xs[0].ndim(), op, ": expected arrays of equally many axes, got ",
            xs[0].shape(), " and ", x.shape());
  }
  return dtype;
}

// Returns a new variable, also of x's own shape.
Variable in_shape(const Variable& x, const Shape& shape) {
  Array y = reshape_view(x.array(), shape);
  if (!y.defined()) y = reshape_view(contiguous(x.array()), shape);
  return record("Reshape", y,
                {{x, [before = x.shape()](const Variable& gy) { return reshape(gy, before); }}});
}

}  // namespace

Variable reshape(const Variable& x, const Shape& shape) {
  if (shape == x.shape()) return x;
  return in_shape(x, resolve(shape, x));
}

Variable transpose(const Variable& x, const std::optional<Axes>& order) {
  Axes axes;
  if (order) {
    axes = normalize_axes("transpose", *order, x.ndim());
    require<std::invalid_argument>(axes.size() == x.ndim(), "transpose: expected ", x.ndim(),
                                   " axes, got ", *order);
  } else {
    for (int i = x.ndim() - 1; i >= 0; --i) axes.push_back(i);
  }
  Axes inverse = axes;
  for (int i = 0; i < axes.size(); ++i) inverse[static_cast<int>(axes[i])] = i;
  return record("Transpose", transpose_view(x.array(), axes),
                {{x, [inverse](const Variable& gy) { return transpose(gy, inverse); }}});
}

Variable swapaxes(const Variable& x, std::int64_t axis1, std::int64_t axis2) {
  Axes axes;
  for (int i = 0; i < x.ndim(); ++i) axes.push_back(i);
  std::swap(axes[normalize_axis("swapaxes", axis1, x.ndim())],
            axes[normalize_axis("swapaxes", axis2, x.ndim())]);
  return transpose(x, axes);
}

Variable broadcast_to(const Variable& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  checked_bytes("broadcast_to", shape, x.dtype());
  return record("BroadcastTo", broadcast_view("broadcast_to", x.array(), shape),
                {{x, [before = x.shape()](const Variable& gy) { return sum_to(gy, before); }}});
}

Variable expand_dims(const Variable& x, std::int64_t axis) {
  const int at = normalize_axis("expand_dims", axis, x.ndim() + 1);
  return record("ExpandDims", expand_view(x.array(), at),
                {{x, [before = x.shape()](const Variable& gy) { return reshape(gy, before); }}});
}

Variable squeeze(const Variable& x, const std::optional<Axes>& removed) {
  Axes axes;
  if (removed) {
    axes = normalize_axes("squeeze", *removed, x.ndim());
    for (std::int64_t a : axes) {
      require<std::invalid_argument>(x.shape(static_cast<int>(a)) == 1,
                                     "squeeze: expected extent 1 along axis ", a, ", got shape ",
                                     x.shape());
    }
  }
  Shape shape;
  for (int i = 0; i < x.ndim(); ++i) {
    if (removed ? !axes.contains(i) : x.shape(i) != 1) shape.push_back(x.shape(i));
  }
  return in_shape(x, shape);
}

Variable flatten(const Variable& x) { return reshape(x, {x.size()}); }

Variable concat(const std::vector<Variable>& xs, std::int64_t along) {
  const Dtype dtype = require_common_dtype("concat", xs);
  const int axis = normalize_axis("concat", along, xs[0].ndim());
  Shape shape = xs[0].shape();
  std::vector<std::int64_t> cuts;
  shape[axis] = 0;
  for (const Variable& x : xs) {
    for (int i = 0; i < x.ndim(); ++i) {
      require(i == axis || x.shape(i) == shape[i],
              "concat: expected equal extents except along axis ", axis, ", got ", xs[0].shape(),
              " and ", x.shape());
    }
    if (&x != xs.data()) cuts.push_back(shape[axis]);
    shape[axis] = saturated_sum(shape[axis], x.shape(axis));
  }
  const Array y = empty_in_order(shape, memory_order(xs[0].array()), dtype, xs[0].device());
  std::vector<const Array*> arrays;
  for (const Variable& x : xs) arrays.push_back(&x.array());
  join(arrays, y, axis);
  auto back = [cuts, axis](std::span<const Variable> gys, std::span<const int>, Node&) {
    return split_axis(gys[0], cuts, axis);
  };
  return record_all("Concat", {&y, 1}, xs, back)[0];
}

Variable stack(const std::vector<Variable>& xs, std::int64_t axis) {
  require_common_dtype("stack", xs);
  std::vector<Variable> layers;
  for (const Variable& x : xs) {
    require(x.shape() == xs[0].shape(), "stack: expected arrays of one shape, got ", xs[0].shape(),
            " and ", x.shape());
    layers.push_back(expand_dims(x, axis));
  }
  return concat(layers, normalize_axis("stack", axis, xs[0].ndim() + 1));
}

std::vector<Variable> split_axis(const Variable& x, const std::vector<std::int64_t>& indices,
                                 std::int64_t along) {
  const int axis = normalize_axis("split_axis", along, x.ndim());
  std::vector<Array> parts;
  std::vector<Shape> shapes;
  std::int64_t start = 0;
  for (std::size_t i = 0; i <= indices.size(); ++i) {
    const std::int64_t end = i < indices.size() ? indices[i] : x.shape(axis);
    require(start <= end && end <= x.shape(axis), "split_axis: expected rising indices up to ",
            x.shape(axis), " along axis ", axis, ", got ", end, " after ", start);
    parts.push_back(slice_view(x.array(), axis, start, end - start));
    shapes.push_back(parts.back().shape());
    start = end;
  }
  auto back = [shapes, axis, dtype = x.dtype(), device = x.device()](std::span<const Variable> gys,
                                                                     std::span<const int>, Node&) {
    std::vector<Variable> all(gys.begin(), gys.end());
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].defined()) all[i] = Variable(zeros(shapes[i], dtype, device));
    }
    return std::vector<Variable>{concat(all, axis)};
  };
  return record_all("SplitAxis", parts, {&x, 1}, back);
}

std::vector<Variable> separate(const Variable& x, std::int64_t along) {
  const int axis = normalize_axis("separate", along, x.ndim());
  std::vector<Array> parts;
  for (std::int64_t i = 0; i < x.shape(axis); ++i) {
    parts.push_back(select_view(x.array(), axis, i));
  }
  if (parts.empty()) return {};
  auto back = [axis, shape = parts[0].shape(), dtype = x.dtype(), device = x.device()](
                  std::span<const Variable> gys, std::span<const int>, Node&) {
    std::vector<Variable> all(gys.begin(), gys.end());
    for (Variable& gy : all) {
      if (!gy.defined()) gy = Variable(zeros(shape, dtype, device));
    }
    return std::vector<Variable>{stack(all, axis)};
  };
  return record_all("Separate", parts, {&x, 1}, back);
}

Variable slice(const Variable& x, const std::vector<Range>& ranges) {
  check_ranges("slice", ranges, x.shape());
  return viewed("GetItem", "GetItemGrad", x,
                [ranges](const Array& array) { return view_of(array, ranges); });
}

Variable diagonal(const Variable& x, std::int64_t offset, std::int64_t axis1, std::int64_t axis2) {
  const int rows = normalize_axis("diagonal", axis1, x.ndim());
  const int columns = normalize_axis("diagonal", axis2, x.ndim());
  require<std::invalid_argument>(rows != columns, "diagonal: expected two different axes, got ",
                                 rows, " twice");
  offset = std::clamp(offset, -x.shape(rows), x.shape(columns));
  return viewed("Diagonal", "DiagonalGrad", x,
                [=](const Array& array) { return diagonal_view(array, rows, columns, offset); });
}

namespace {

// Fills what is outside of the middle.
void fill_around(const Array& y, const std::vector<Range>& middle, double value) {
  constexpr std::int64_t kLongRow = 512;
  const Axes order = memory_order(y);
  const auto is_padded = [&](int axis) {
    return middle[static_cast<std::size_t>(axis)].length < y.shape(axis);
  };
  // Few elements here and there take longer than all, unless they are far apart.
  const int last = y.ndim() > 0 ? static_cast<int>(order.back()) : -1;
  if (last >= 0 && is_padded(last) && y.shape(last) < kLongRow) return fill(y, value);
  Array rest = y;
  for (int axis = 0; axis < y.ndim(); ++axis) {
    if (!is_padded(axis)) continue;
    const auto& [start, length, step] = middle[static_cast<std::size_t>(axis)];
    const std::int64_t end = start + length;
    fill(slice_view(rest, axis, 0, start), value);
    fill(slice_view(rest, axis, end, y.shape(axis) - end), value);
    rest = slice_view(rest, axis, start, length);
  }
}

}  // namespace

Shape padded_shape(const Variable& x, const Dims& before, const Dims& after) {
  Shape shape = x.shape("pad");
  require(before.size() == x.ndim() && after.size() == x.ndim(), "pad: expected widths for ",
          x.ndim(), " axes, got ", before, " and ", after);
  for (int i = 0; i < x.ndim(); ++i) {
    require<std::invalid_argument>(before[i] >= 0 && after[i] >= 0,
                                   "pad: expected widths of at least 0, got ", before, " and ",
                                   after);
    shape[i] = saturated_sum(shape[i], saturated_sum(before[i], after[i]));
  }
  return shape;
}

Variable pad(const Variable& x, const Dims& before, const Dims& after, double value) {
  const Shape shape = padded_shape(x, before, after);
  std::vector<Range> middle = full_ranges(x.shape());
  for (int i = 0; i < x.ndim(); ++i) middle[static_cast<std::size_t>(i)].start = before[i];
  const Array y = empty_in_order(shape, memory_order(x.array()), x.dtype(), x.device());
  Axes whole;
  for (const std::int64_t axis : memory_order(y)) {
    if (before[static_cast<int>(axis)] + after[static_cast<int>(axis)] > 0) break;
    whole.push_back(axis);
  }
  for_each_part(y, whole, [&](const Part& part) {
    std::vector<Range> inside = middle;
    for (const auto& [axis, begin, length] : part.cuts) {
      inside[static_cast<std::size_t>(axis)].length = length;
    }
    const Array to = part.of(y);
    fill_around(to, inside, value);
    copy(part.of(x.array()), view_of(to, inside));
  });
  return record("Pad", y, {{x, [middle](const Variable& gy) { return slice(gy, middle); }}});
}

std::pair<Variable, Variable> promoted(const Variable& a, const Variable& b, const char* caller) {
  const auto is_ieee = [](Dtype d) { return is_float(d) && d != Dtype::bfloat16; };
  if (a.dtype(caller) == b.dtype(caller) || !is_ieee(a.dtype()) || !is_ieee(b.dtype()))
    return {a, b};
  const Dtype wider = std::max(a.dtype(), b.dtype());
  return {cast(a, wider), cast(b, wider)};
}

Variable identity(const Variable& x) {
  return record("Identity", x.array(), {{x, [](const Variable& gy) { return gy; }}});
}

Variable cast(const Variable& x, Dtype dtype) {
  if (x.dtype() == dtype) return x;
  const Array y = cast(x.array(), dtype);
  if (!is_float(dtype) || !is_float(x.dtype())) return Variable(y);
  return record("Cast", y,
                {{x, [before = x.dtype()](const Variable& gy) { return cast(gy, before); }}});
}

}  // namespace renga
