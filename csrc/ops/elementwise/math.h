// Elementary functions of one variable.
#pragma once

#include "ops/elementwise/elementwise.h"
#include "ops/list.h"

namespace renga {

Variable absolute(const Variable& x);
Variable square(const Variable& x);
Variable reciprocal(const Variable& x);
Variable sqrt(const Variable& x);
Variable rsqrt(const Variable& x);
Variable exp(const Variable& x);
Variable expm1(const Variable& x);
Variable log(const Variable& x);
Variable log1p(const Variable& x);
Variable log2(const Variable& x);
Variable log10(const Variable& x);
Variable sin(const Variable& x);
Variable cos(const Variable& x);
Variable tan(const Variable& x);
Variable arcsin(const Variable& x);
Variable arccos(const Variable& x);
Variable arctan(const Variable& x);
Variable sinh(const Variable& x);
Variable cosh(const Variable& x);
Variable erf(const Variable& x);
Variable arctan2(const Variable& x1, const Variable& x2);
Variable sign(const Variable& x);
Variable floor(const Variable& x);
Variable ceil(const Variable& x);

template <class Visit>
void list_math_ops(Visit&& visit) {
  const auto unary = [&](const char* name, Variable (*function)(const Variable&),
                         const char* text) {
    visit(Op{name, "(...) -> (...)", text}, function, Arg{"x"});
  };
  unary("absolute", &absolute, "|x|.");
  unary("square", &square, "x squared.");
  unary("reciprocal", &reciprocal, "1 / x.");
  unary("sqrt", &sqrt, "Square root.");
  unary("rsqrt", &rsqrt, "1 / sqrt(x).");
  unary("exp", &exp, "e to the power of x.");
  unary("expm1", &expm1, "exp(x) - 1, exact near 0.");
  unary("log", &log, "Natural logarithm.");
  unary("log1p", &log1p, "log(1 + x), exact near 0.");
  unary("log2", &log2, "Logarithm to base 2.");
  unary("log10", &log10, "Logarithm to base 10.");
  unary("sin", &sin, "Sine of an angle in radians.");
  unary("cos", &cos, "Cosine of an angle in radians.");
  unary("tan", &tan, "Tangent of an angle in radians.");
  unary("arcsin", &arcsin, "Angle in radians whose sine is x.");
  unary("arccos", &arccos, "Angle in radians whose cosine is x.");
  unary("arctan", &arctan, "Angle in radians whose tangent is x.");
  unary("sinh", &sinh, "Hyperbolic sine.");
  unary("cosh", &cosh, "Hyperbolic cosine.");
  unary("erf", &erf, "Gauss error function.");
  visit(Op{"arctan2", "(...), (...) -> (...)", "Angle in radians of the point (x2, x1)."}, &arctan2,
        Arg{"x1"}, Arg{"x2"});
  unary("sign", &sign, "-1, 0 or 1; it has no gradient.");
  unary("floor", &floor, "x rounded down; it has no gradient.");
  unary("ceil", &ceil, "x rounded up; it has no gradient.");
}

}  // namespace renga
