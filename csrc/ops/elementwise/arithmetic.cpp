#include "ops/elementwise/arithmetic.h"

#include <cmath>

#include "autograd/node.h"
#include "ops/elementwise/math.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {

constinit FusionRegistry<Variable(const Variable&, const Variable&)> addition_fusions{};

namespace {

// f of a gradient. That of a sum repeats numbers, of which f then computes one each.
template <class F>
Variable map_gradient(const Variable& gy, const F& f) {
  Array some = gy.array();
  for (int axis = 0; axis < some.ndim(); ++axis) {
    if (some.strides()[axis] == 0 && some.shape(axis) > 1) some = slice_view(some, axis, 0, 1);
  }
  if (backprop_enabled() || some.size() == gy.size()) return f(gy);
  return Variable(broadcast_view("gradient", f(Variable(some)).array(), gy.shape()));
}

// Registers the arithmetic that the engine needs to accumulate gradients.
[[maybe_unused]] const bool registered = [] {
  arithmetic.add = [](const Variable& a, const Variable& b) { return add(a, b); };
  arithmetic.add_to = [](const Array& sum, const Array& x) {
    elementwise_kernels.on(sum.device()).binary(Binary::add, 0, sum, x, sum);
  };
  arithmetic.cast = [](const Variable& x, Dtype dtype) {
    return map_gradient(x, [=](const Variable& g) { return cast(g, dtype); });
  };
  arithmetic.copy = [](const Variable& x) {
    return record("Copy", copy_of(x.array()), {{x, [](const Variable& gy) { return gy; }}});
  };
  arithmetic.full_like = [](const Array& x, double value) {
    Array y = empty_like(x);
    fill(y, value);
    return y;
  };
  return true;
}();

bool is_integer(Dtype dtype) { return !is_float(dtype) && dtype != Dtype::bool_; }

// 1 where the comparison holds, else 0.
Variable mask(const char* op, Binary map, const Variable& a, const Variable& b) {
  return Variable(apply(op, map, a.array(), b.array()));
}

// The operand for which `comparison` with the other one holds. Where both are equal, a gets the
// gradient.
Variable select_operand(const char* op, const char* label, Binary map, Binary comparison,
                        const Variable& a, const Variable& b) {
  require_floats(op, a.array(op));
  const Array y = apply(op, map, a.array(), b.array(op));
  auto vjp_a = [=](const Variable& gy) {
    return sum_to(multiply(gy, mask(op, comparison, a, b)), a.shape());
  };
  auto vjp_b = [=](const Variable& gy) {
    return sum_to(multiply(gy, subtract_from(1, mask(op, comparison, a, b))), b.shape());
  };
  return record(label, y, {{a, vjp_a}, {b, vjp_b}});
}

}  // namespace

Variable product_with_difference(const Variable& gy, const Variable& a, const Variable& b,
                                 double limit) {
  if (backprop_enabled()) {
    return multiply(gy, clip(subtract(a, b), -limit, limit));
  }
  const Array most = full({}, limit, a.dtype(), a.device());
  const bool are_mixed = is_activation(b.dtype()) && is_activation(gy.dtype());
  if (a.dtype() == Dtype::bfloat16 && are_mixed && a.device().is_host() &&
      a.shape() == gy.shape() && b.shape() == gy.shape()) {  // rounded at once
    const Array gx = empty_like(a.array());
    elementwise_kernels.on(a.device())
        .quaternary(Quaternary::difference, a.array(), b.array(), gy.array(),
                    broadcast_view("multiply", most, gy.shape()), gx);
    return Variable(gx);
  }
  return Variable(
      apply("multiply", Quaternary::difference, a.array(), b.array(), gy.array(), most));
}

Variable record_sum(const Variable& a, const Variable& b, const Array& y) {
  const auto vjp = [](const Shape& shape) {
    return [shape](const Variable& gy) { return sum_to(gy, shape); };
  };
  return record("_ + _", y, {{a, vjp(a.shape())}, {b, vjp(b.shape())}});
}

Variable add(const Variable& a, const Variable& b) {
  if (Variable y = addition_fusions.apply(a, b); y.defined()) return y;
  return record_sum(a, b, apply("add", Binary::add, a.array(), b.array()));
}

Variable subtract(const Variable& a, const Variable& b) {
  const Array y = apply("subtract", Binary::subtract, a.array(), b.array());
  return record("_ - _", y,
                {{a, [shape = a.shape()](const Variable& gy) { return sum_to(gy, shape); }},
                 {b, [shape = b.shape()](const Variable& gy) {
                    return map_gradient(sum_to(gy, shape),
                                        [](const Variable& g) { return negative(g); });
                  }}});
}

Variable multiply(const Variable& a, const Variable& b) {
  const Array y = apply("multiply", Binary::multiply, a.array(), b.array());
  const auto vjp = [](const Variable& other, const Shape& shape) {
    return [other, shape](const Variable& gy) { return sum_to(multiply(gy, other), shape); };
  };
  return record("_ * _", y, {{a, vjp(b, a.shape())}, {b, vjp(a, b.shape())}});
}

Variable divide(const Variable& a, const Variable& b) {
  if (is_integer(a.dtype()) && a.dtype() == b.dtype()) {
    return divide(cast(a, Dtype::float64), cast(b, Dtype::float64));
  }
  const Array y = apply("divide", Binary::divide, a.array(), b.array());
  auto vjp_a = [b, shape = a.shape()](const Variable& gy) { return sum_to(divide(gy, b), shape); };
  auto vjp_b = [a, b](const Variable& gy) {
    return sum_to(divide(multiply(negative(gy), a), square(b)), b.shape());
  };
  return record("_ / _", y, {{a, vjp_a}, {b, vjp_b}});
}

Variable floor_divide(const Variable& a, const Variable& b) {
  return Variable(apply("floor_divide", Binary::floor_divide, a.array(), b.array()));
}

Variable power(const Variable& a, const Variable& b) {
  if (is_integer(b.dtype()) && a.size() > 0 && b.size() > 0 && !b.device().is_meta()) {
    const Variable flat = flatten(b);
    require<std::invalid_argument>(item(reduce(Reduction::min, flat.array(), {0})) >= 0,
                                   "power: expected exponents of at least 0 for integers");
  }
  const Array y = apply("power", Binary::power, a.array(), b.array());
  auto vjp_a = [a, b](const Variable& gy) {
    return sum_to(multiply(gy, multiply(b, power(a, add(b, -1)))), a.shape());
  };
  auto vjp_b = [a, b](const Variable& gy) {
    return sum_to(multiply(gy, multiply(power(a, b), log(a))), b.shape());
  };
  return record("_ ** _", y, {{a, vjp_a}, {b, vjp_b}});
}

Variable squared_difference(const Variable& a, const Variable& b) {
  require_floats("squared_difference", a.array());
  const Array y = apply("squared_difference", Binary::squared_difference, a.array(), b.array());
  const auto vjp = [](const Variable& x, const Variable& other) {
    return [=](const Variable& gy) {
      const Variable twice = map_gradient(gy, [](const Variable& g) { return multiply(g, 2); });
      return sum_to(product_with_difference(twice, x, other), x.shape());
    };
  };
  return record("SquaredDifference", y, {{a, vjp(a, b)}, {b, vjp(b, a)}});
}

Variable linear_interpolate(const Variable& weights, const Variable& first,
                            const Variable& second) {
  const char* const op = "linear_interpolate";
  const auto [p, x, y] = in_one_dtype(op, weights, first, second);
  const Array z = apply(op, Quaternary::interpolate, p.array(), x.array(), y.array(), y.array());
  auto vjp_p = [=](const Variable& gz) {
    return sum_to(product_with_difference(gz, x, y), p.shape());
  };
  auto vjp_x = [p, shape = x.shape()](const Variable& gz) {
    return sum_to(multiply(gz, p), shape);
  };
  auto vjp_y = [p, shape = y.shape()](const Variable& gz) {
    return sum_to(multiply(gz, subtract_from(1, p)), shape);
  };
  return record("LinearInterpolate", z, {{p, vjp_p}, {x, vjp_x}, {y, vjp_y}});
}

Variable rotate_pairs(const Variable& x, const Array& cosines, const Array& sines) {
  const int axis = x.ndim() - 1;
  require(is_float(x.dtype()) && axis > 2 && x.shape(axis) % 2 == 0,
          "rotate_pairs: expected floats (N, C, ..., L, D) with an even D, got ", x.dtype(), " ",
          x.shape());
  const std::int64_t half = x.shape(axis) / 2;
  const Shape table{x.shape(axis - 1), half};
  require(cosines.shape() == table && sines.shape() == table,
          "rotate_pairs: expected cosines and sines of shape ", table, ", got ", cosines.shape(),
          " and ", sines.shape());
  const Array c = cast(to_device(cosines, x.device()), x.dtype());
  const Array s = cast(to_device(sines, x.device()), x.dtype());
  const auto halves = [=](const Array& of) {
    return std::pair(slice_view(of, axis, 0, half), slice_view(of, axis, half, half));
  };
  const Array y = empty(x.shape(), x.dtype(), x.device());
  const auto [first, second] = halves(x.array());
  const auto [y_first, y_second] = halves(y);
  const Array cosine = broadcast_view("rotate_pairs", c, first.shape());
  const Array sine = broadcast_view("rotate_pairs", s, first.shape());
  const Array opposite = broadcast_view("rotate_pairs", apply(Unary::negative, s), first.shape());
  const auto& kernel = elementwise_kernels.on(x.device()).quaternary;
  kernel(Quaternary::rotate, first, second, cosine, sine, y_first);
  kernel(Quaternary::rotate, second, first, cosine, opposite, y_second);
  auto vjp_x = [c, s](const Variable& gy) {
    return rotate_pairs(gy, c, apply(Unary::negative, s));
  };
  return record("RotatePairs", y, {{x, vjp_x}});
}

Variable maximum(const Variable& a, const Variable& b) {
  return select_operand("maximum", "Maximum", Binary::maximum, Binary::greater_equal, a, b);
}

Variable minimum(const Variable& a, const Variable& b) {
  return select_operand("minimum", "Minimum", Binary::minimum, Binary::less_equal, a, b);
}

Variable negative(const Variable& x) {
  return record("-_", apply(Unary::negative, x.array()),
                {{x, [](const Variable& gy) { return negative(gy); }}});
}

Variable add(const Variable& x, double c) {
  return record("_ + _", apply(Unary::add, x.array(), c),
                {{x, [](const Variable& gy) { return gy; }}});
}

Variable multiply(const Variable& x, double c) {
  return record("_ * _", apply(Unary::multiply, x.array(), c),
                {{x, [c](const Variable& gy) { return multiply(gy, c); }}});
}

Variable subtract_from(double c, const Variable& x) {
  return record("_ - _", apply(Unary::subtract_from, x.array(), c),
                {{x, [](const Variable& gy) { return negative(gy); }}});
}

Variable divide_into(double c, const Variable& x) {
  auto vjp_x = [c, x](const Variable& gy) { return multiply(divide(gy, square(x)), -c); };
  return record("_ / _", apply(Unary::divide_into, x.array(), c), {{x, vjp_x}});
}

Variable floor_divide(const Variable& x, double c) {
  return Variable(apply(Unary::floor_divide, x.array(), c));
}

Variable floor_divide_into(double c, const Variable& x) {
  return Variable(apply(Unary::floor_divide_into, x.array(), c));
}

namespace {

// Powers that are products or roots are computed so, as NumPy does.
Array power_of_array(const Array& x, double n) {
  if (n == 3) return apply(Unary::cube, x);
  if (n == 0.5) return apply(Unary::sqrt, x);
  if (n == -0.5) return apply(Unary::rsqrt, x);
  if (n == -1) return apply(Unary::divide_into, x, 1);
  if (n == -2) return apply(Unary::square, apply(Unary::divide_into, x, 1));
  return apply(Unary::power, x, n);
}

}  // namespace

Variable power(const Variable& x, double n) {
  if (n == 2) return square(x);
  auto vjp_x = [x, n](const Variable& gy) {
    return n == 0 ? multiply(gy, 0) : multiply(gy, multiply(power(x, n - 1), n));
  };
  return record("_ ** _", power_of_array(x.array(), n), {{x, vjp_x}});
}

Variable power_of(double base, const Variable& x) {
  const Array y = apply(Unary::power_of, x.array(), base);
  auto vjp_x = [y = Saved(y), base](const Variable& gy, GradientSink& to) {
    return multiply(multiply(gy, y.of(to.node())), std::log(base));
  };
  return record("_ ** _", y, {{x, vjp_x}});
}

Variable clip(const Variable& x, double x_min, double x_max) {
  auto vjp_x = [x, x_min, x_max](const Variable& gy) {
    return multiply(gy, Variable(apply(Unary::inside, x.array(), x_min, x_max)));
  };
  return record("Clip", apply(Unary::clip, x.array(), x_min, x_max), {{x, vjp_x}});
}

Variable where(const Array& condition, const Variable& x, const Variable& y) {
  const Array chosen = select("where", condition, x.array(), y.array());
  const auto zero_like = [](const Variable& gy) {
    return Variable(zeros({}, gy.dtype(), gy.device()));
  };
  auto vjp_x = [=, shape = x.shape()](const Variable& gy) {
    return sum_to(where(condition, gy, zero_like(gy)), shape);
  };
  auto vjp_y = [=, shape = y.shape()](const Variable& gy) {
    return sum_to(where(condition, zero_like(gy), gy), shape);
  };
  return record("Where", chosen, {{x, vjp_x}, {y, vjp_y}});
}

}  // namespace renga
