// Vectors of length 1.
#include <limits>

#include "autograd/backward.h"
#include "autograd/node.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/math.h"
#include "ops/normalization/normalization.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {
namespace {

// The square root has no derivative at 0: lengths of 0 are constants.
Variable compose(const Variable& given, double eps, const Axes& axes) {
  const Variable x = cast(given, statistics_dtype(given.dtype()));
  const Variable squares = sum(square(x), axes, true);
  const Array is_none =
      apply("normalize", Binary::less_equal, squares.array(), zeros({}, x.dtype(), x.device()));
  const Variable none(is_none);
  const Variable length = subtract(sqrt(add(squares, none)), none);
  return cast(divide(x, add(length, eps)), given.dtype());
}

}  // namespace

Variable normalize(const Variable& given, double eps, const Axes& axis) {
  const char* op = "normalize";
  require_floats(op, given.array());
  const Axes axes = normalize_axes(op, axis, given.ndim());
  Variable length, y;
  {
    const SettingScope off(&Settings::backprop, false);
    const Variable x = cast(given, statistics_dtype(given.dtype()));
    length = sqrt(sum(square(x), axes, true));
    y = cast(divide(x, add(length, eps)), given.dtype());
  }
  auto vjp_x = [=](const Variable& given_gy) {
    if (backprop_enabled()) {
      const Compose recompute = [&](std::span<const Variable> xs) {
        return std::vector{compose(xs[0], eps, axes)};
      };
      return recorded_gradients(recompute, {{given}}, {{given_gy}})[0];
    }
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
