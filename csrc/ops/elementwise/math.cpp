#include "ops/elementwise/math.h"

#include <numbers>

#include "autograd/node.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {
namespace {

// y = map(x) with derivative slope(x), written with operations.
template <class Slope>
Variable smooth(const char* name, Unary map, const Variable& x, Slope slope) {
  auto vjp_x = [x, slope](const Variable& gy) { return multiply(gy, slope(x)); };
  return record(name, apply(map, x.array(name)), {{x, vjp_x}});
}

// Records y = map(x) with derivative slope(y), written with operations.
template <class Slope>
Variable smooth_in_y(const char* name, Unary map, const Variable& x, Slope slope) {
  const Array y = apply(map, x.array(name));
  auto vjp_x = [y = Saved(y), slope](const Variable& gy, GradientSink& to) {
    return multiply(gy, slope(y.of(to.node())));
  };
  return record(name, y, {{x, vjp_x}});
}

// y = map(x) with derivative 0 almost everywhere.
Variable piecewise_constant(Unary map, const Variable& x,
                            const char* caller = __builtin_FUNCTION()) {
  return Variable(apply(map, x.array(caller)));
}

}  // namespace

Variable absolute(const Variable& x) {
  require_floats("absolute", x.array());
  return smooth("absolute", Unary::absolute, x, [](const Variable& v) { return sign(v); });
}

Variable square(const Variable& x) {
  require_floats("square", x.array());
  return smooth("square", Unary::square, x, [](const Variable& v) { return multiply(v, 2); });
}

Variable reciprocal(const Variable& x) { return divide_into(1, x); }

Variable sqrt(const Variable& x) {
  return smooth_in_y("sqrt", Unary::sqrt, x, [](const Variable& y) { return divide_into(0.5, y); });
}

Variable rsqrt(const Variable& x) {
  return smooth_in_y("rsqrt", Unary::rsqrt, x,
                     [](const Variable& y) { return multiply(power(y, 3), -0.5); });
}

Variable exp(const Variable& x) {
  return smooth_in_y("exp", Unary::exp, x, [](const Variable& y) { return y; });
}

Variable expm1(const Variable& x) {
  return smooth_in_y("expm1", Unary::expm1, x, [](const Variable& y) { return add(y, 1); });
}

Variable log(const Variable& x) {
  auto vjp_x = [x](const Variable& gy) { return divide(gy, x); };
  return record("log", apply(Unary::log, x.array()), {{x, vjp_x}});
}

Variable log1p(const Variable& x) {
  auto vjp_x = [x](const Variable& gy) { return divide(gy, add(x, 1)); };
  return record("log1p", apply(Unary::log1p, x.array()), {{x, vjp_x}});
}

Variable log2(const Variable& x) {
  return smooth("log2", Unary::log2, x,
                [](const Variable& v) { return divide_into(std::numbers::log2e, v); });
}

Variable log10(const Variable& x) {
  return smooth("log10", Unary::log10, x,
                [](const Variable& v) { return divide_into(std::numbers::log10e, v); });
}

Variable sin(const Variable& x) {
  return smooth("sin", Unary::sin, x, [](const Variable& v) { return cos(v); });
}

Variable cos(const Variable& x) {
  return smooth("cos", Unary::cos, x, [](const Variable& v) { return negative(sin(v)); });
}

Variable tan(const Variable& x) {
  return smooth_in_y("tan", Unary::tan, x, [](const Variable& y) { return add(square(y), 1); });
}

Variable arcsin(const Variable& x) {
  return smooth("arcsin", Unary::arcsin, x,
                [](const Variable& v) { return rsqrt(subtract_from(1, square(v))); });
}

Variable arccos(const Variable& x) {
  return smooth("arccos", Unary::arccos, x,
                [](const Variable& v) { return negative(rsqrt(subtract_from(1, square(v)))); });
}

Variable arctan(const Variable& x) {
  return smooth("arctan", Unary::arctan, x,
                [](const Variable& v) { return divide_into(1, add(square(v), 1)); });
}

Variable arctanh(const Variable& x) {
  return smooth("arctanh", Unary::arctanh, x,
                [](const Variable& v) { return divide_into(1, subtract_from(1, square(v))); });
}

Variable sinh(const Variable& x) {
  return smooth("sinh", Unary::sinh, x, [](const Variable& v) { return cosh(v); });
}

Variable cosh(const Variable& x) {
  return smooth("cosh", Unary::cosh, x, [](const Variable& v) { return sinh(v); });
}

Variable erf(const Variable& x) {
  auto vjp_x = [x](const Variable& gy) {
    if (!backprop_enabled()) {
      return Variable(apply("erf", Binary::erf_grad, x.array(), gy.array()));  // in one pass
    }
    return multiply(gy, multiply(exp(negative(square(x))), 2 * std::numbers::inv_sqrtpi));
  };
  return record("erf", apply(Unary::erf, x.array()), {{x, vjp_x}});
}

namespace {

// factor e^(rate x²)
Variable bell(const Variable& x, double rate, double factor) {
  return multiply(exp(multiply(square(x), rate)), factor);
}
constexpr double kHalfRoot = 0.5 / std::numbers::inv_sqrtpi;  // of pi
constexpr double kNormal = std::numbers::inv_sqrtpi / std::numbers::sqrt2;

}  // namespace

Variable erfc(const Variable& x) {
  return smooth("erfc", Unary::erfc, x,
                [](const Variable& v) { return bell(v, -1, -1 / kHalfRoot); });
}

Variable ndtr(const Variable& x) {
  return smooth("ndtr", Unary::ndtr, x, [](const Variable& v) { return bell(v, -0.5, kNormal); });
}

Variable erfinv(const Variable& x) {
  return smooth_in_y("erfinv", Unary::erfinv, x,
                     [](const Variable& y) { return bell(y, 1, kHalfRoot); });
}

Variable erfcinv(const Variable& x) {
  return smooth_in_y("erfcinv", Unary::erfcinv, x,
                     [](const Variable& y) { return bell(y, 1, -kHalfRoot); });
}

Variable ndtri(const Variable& x) {
  return smooth_in_y("ndtri", Unary::ndtri, x,
                     [](const Variable& y) { return bell(y, 0.5, 1 / kNormal); });
}

Variable erfcx(const Variable& x) {
  const Array y = apply(Unary::erfcx, x.array());
  auto vjp_x = [x, y = Saved(y)](const Variable& gy, GradientSink& to) {
    return multiply(gy, add(multiply(multiply(x, y.of(to.node())), 2), -1 / kHalfRoot));
  };
  return record("erfcx", y, {{x, vjp_x}});
}

Variable log_ndtr(const Variable& x) {
  // The quotient of the density and the probability, whose exponentials cancel in erfcx.
  return smooth("log_ndtr", Unary::log_ndtr, x, [](const Variable& v) {
    return divide_into(2 * kNormal, erfcx(multiply(v, -1 / std::numbers::sqrt2)));
  });
}

Variable lgamma(const Variable& x) {
  return smooth("lgamma", Unary::lgamma, x, [](const Variable& v) { return digamma(v); });
}

Variable digamma(const Variable& x) {
  return smooth("digamma", Unary::digamma, x,
                [](const Variable& v) { return polygamma(full({}, 1, v.dtype(), v.device()), v); });
}

Variable polygamma(const Array& order, const Variable& x) {
  require_floats("polygamma", x.array());
  const Array n = cast(to_device(order, x.device()), x.dtype());
  auto vjp_x = [=](const Variable& gy) {
    return sum_to(multiply(gy, polygamma(apply(Unary::add, n, 1), x)), x.shape());
  };
  return record("polygamma", apply("polygamma", Binary::polygamma, n, x.array()), {{x, vjp_x}});
}

Variable zeta(const Array& order, const Variable& q, std::int64_t more) {
  require_floats("zeta", q.array());
  const Array s = cast(to_device(order, q.device()), q.dtype());
  const auto added = static_cast<double>(more);
  auto vjp_q = [=](const Variable& gy) {
    const Variable factor(apply(Unary::subtract_from, s, -added));
    return sum_to(multiply(gy, multiply(zeta(s, q, more + 1), factor)), q.shape());
  };
  return record("zeta", apply("zeta", Binary::zeta, s, q.array(), added), {{q, vjp_q}});
}

Variable arctan2(const Variable& y_operand, const Variable& x_operand) {
  // Names of their own: OpenMP keeps clang from capturing those of a structured binding.
  const std::pair<Variable, Variable> operands = promoted(y_operand, x_operand);
  const Variable &x1 = operands.first, &x2 = operands.second;
  require_floats("arctan2", x1.array());
  const Array y = apply("arctan2", Binary::arctan2, x1.array(), x2.array());
  const auto square_norm = [](const Variable& a, const Variable& b) {
    return add(square(a), square(b));
  };
  auto vjp_x1 = [=](const Variable& gy) {
    return sum_to(multiply(gy, divide(x2, square_norm(x1, x2))), x1.shape());
  };
  auto vjp_x2 = [=](const Variable& gy) {
    return sum_to(multiply(gy, divide(negative(x1), square_norm(x1, x2))), x2.shape());
  };
  return record("arctan2", y, {{x1, vjp_x1}, {x2, vjp_x2}});
}

Variable sign(const Variable& x) { return piecewise_constant(Unary::sign, x); }
Variable floor(const Variable& x) { return piecewise_constant(Unary::floor, x); }
Variable ceil(const Variable& x) { return piecewise_constant(Unary::ceil, x); }
Variable fix(const Variable& x) { return piecewise_constant(Unary::trunc, x); }

Variable fmod(const Variable& x, const Variable& divisor) {
  require_floats("fmod", x.array());
  const Array y = apply("fmod", Binary::fmod, x.array(), divisor.array());
  auto vjp_x = [shape = x.shape()](const Variable& gy) { return sum_to(gy, shape); };
  auto vjp_divisor = [=](const Variable& gy) {
    return sum_to(negative(multiply(gy, fix(divide(x, divisor)))), divisor.shape());
  };
  return record("fmod", y, {{x, vjp_x}, {divisor, vjp_divisor}});
}

}  // namespace renga
