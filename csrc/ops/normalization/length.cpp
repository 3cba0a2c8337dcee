// Vectors of length 1.
#include <limits>

#include "autograd/backward.h"
#include "autograd/node.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/math.h"
#include "ops/normalization/layer.h"
#include "ops/normalization/normalization.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {
namespace {

// The square root has no derivative at 0: lengths of 0 are constants.
Variable compose(const Variable& given, double eps, const Axes& axes) {
  const Variable x = cast(given, wide_dtype(given.dtype()));
  const Variable squares = sum(square(x), axes, true);
  const Array is_none =
      apply("normalize", Binary::less_equal, squares.array(), zeros({}, x.dtype(), x.device()));
  const Variable none(is_none);
  const Variable length = subtract(sqrt(add(squares, none)), none);
  return cast(divide(x, add(length, eps)), given.dtype());
}

Variable recorded_gradient(const Variable& x, double eps, const Axes& axes, const Variable& gy) {
  const Compose recompute = [&](std::span<const Variable> xs) {
    return std::vector{compose(xs[0], eps, axes)};
  };
  return recorded_gradients(recompute, {{x}}, {{gy}})[0];
}

// Along the last axis, on the host: in one pass each way.
Variable normalize_rows(const Variable& x, double eps) {
  const std::int64_t columns = x.shape(x.ndim() - 1);
  const Shape rows{columns == 0 ? 0 : x.size() / columns, columns};
  const auto matrix = [rows](const Array& v) { return reshape_view(contiguous(v), rows); };
  const Array xs = matrix(x.array()), lengths = empty({rows[0]}, wide_dtype(x.dtype()));
  const Array y = empty(x.shape(), x.dtype());
  row_normalization_kernels.on(x.device()).unit_rows(xs, eps, reshape_view(y, rows), lengths);
  auto vjp_x = [=](const Variable& gy) {
    if (backprop_enabled()) return recorded_gradient(x, eps, {x.ndim() - 1}, gy);
    const Array gx = empty(x.shape(), x.dtype());
    row_normalization_kernels.on(x.device())
        .unit_rows_grad(xs, eps, lengths, matrix(gy.array()), reshape_view(gx, rows));
    return Variable(gx);
  };
  return record("normalize", y, {{x, vjp_x}});
}

}  // namespace

Variable normalize(const Variable& given, double eps, const Axes& axis) {
  const char* op = "normalize";
  require_floats(op, given.array());
  const Axes axes = normalize_axes(op, axis, given.ndim());
  const bool is_last = axes.size() == 1 && axes[0] == given.ndim() - 1;
  if (is_last && given.device().is_host()) return normalize_rows(given, eps);
  Variable length, y;
  {
    const SettingScope off(&Settings::backprop, false);
    const Variable x = cast(given, wide_dtype(given.dtype()));
    length = sqrt(sum(square(x), axes, true));
    y = cast(divide(x, add(length, eps)), given.dtype());
  }
  auto vjp_x = [=](const Variable& given_gy) {
    if (backprop_enabled()) return recorded_gradient(given, eps, axes, given_gy);
    const Variable x = cast(given, length.dtype()), gy = cast(given_gy, length.dtype());
    const Variable scale = divide_into(1, add(length, eps));
    // Where a length is 0, so is the product.
    const Variable positive =
        clip(length, std::numeric_limits<float>::min(), std::numeric_limits<double>::infinity());
    const Variable along = divide(multiply(sum(multiply(gy, x), axes, true), scale), positive);
    return cast(multiply(subtract(gy, multiply(x, along)), scale), given.dtype());
  };
  return record("normalize", y.array(), {{given, vjp_x}});
}

}  // namespace renga
