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
Variable arctanh(const Variable& x);
Variable sinh(const Variable& x);
Variable cosh(const Variable& x);
Variable erf(const Variable& x);
Variable erfc(const Variable& x);
Variable ndtr(const Variable& x);
Variable erfinv(const Variable& x);
Variable erfcinv(const Variable& x);
Variable ndtri(const Variable& x);
Variable erfcx(const Variable& x);
Variable log_ndtr(const Variable& x);
Variable lgamma(const Variable& x);
Variable digamma(const Variable& x);
// Have gradients in x and q alone.
Variable polygamma(const Array& n, const Variable& x);
Variable zeta(const Array& s, const Variable& q, std::int64_t more);
Variable arctan2(const Variable& x1, const Variable& x2);
Variable sign(const Variable& x);
Variable floor(const Variable& x);
Variable ceil(const Variable& x);
Variable fix(const Variable& x);
Variable fmod(const Variable& x, const Variable& divisor);

template <class Visit>
void list_math_ops(Visit&& visit) {
  const auto unary = [&](const char* name, Variable (*function)(const Variable&), const char* text,
                         const Traits& traits) {
    visit(Op{name, "(...) -> (...)", text, traits}, function, Arg{"x"});
  };
  unary("absolute", &absolute, "|x|.", pointwise(1, "Abs"));
  unary("square", &square, "x squared.", pointwise(1));
  unary("reciprocal", &reciprocal, "1 / x.", pointwise(1, "Reciprocal"));
  unary("sqrt", &sqrt, "Square root.", pointwise(1, "Sqrt"));
  unary("rsqrt", &rsqrt, "1 / sqrt(x).", pointwise(2));
  unary("exp", &exp, "e to the power of x.", pointwise(1, "Exp"));
  unary("expm1", &expm1, "exp(x) - 1, exact near 0.", pointwise(1));
  unary("log", &log, "Natural logarithm.", pointwise(1, "Log"));
  unary("log1p", &log1p, "log(1 + x), exact near 0.", pointwise(1));
  unary("log2", &log2, "Logarithm to base 2.", pointwise(1));
  unary("log10", &log10, "Logarithm to base 10.", pointwise(1));
  unary("sin", &sin, "Sine of an angle in radians.", pointwise(1, "Sin"));
  unary("cos", &cos, "Cosine of an angle in radians.", pointwise(1, "Cos"));
  unary("tan", &tan, "Tangent of an angle in radians.", pointwise(1, "Tan"));
  unary("arcsin", &arcsin, "Angle in radians whose sine is x.", pointwise(1, "Asin"));
  unary("arccos", &arccos, "Angle in radians whose cosine is x.", pointwise(1, "Acos"));
  unary("arctan", &arctan, "Angle in radians whose tangent is x.", pointwise(1, "Atan"));
  unary("arctanh", &arctanh, "The number whose hyperbolic tangent is x.", pointwise(1, "Atanh"));
  unary("sinh", &sinh, "Hyperbolic sine.", pointwise(1, "Sinh"));
  unary("cosh", &cosh, "Hyperbolic cosine.", pointwise(1, "Cosh"));
  unary("erf", &erf, "Gauss error function.", pointwise(1, "Erf"));
  unary("erfc", &erfc,
        "1 - erf(x), exact where that is near 0; of float32 within 4 units in the last place.",
        pointwise(1));
  unary("ndtr", &ndtr, "The probability that a standard normal number is below x.", pointwise(1));
  unary("erfinv", &erfinv, "The inverse of erf.", pointwise(1));
  unary("erfcinv", &erfcinv, "The inverse of erfc.", pointwise(1));
  unary("ndtri", &ndtri, "The inverse of ndtr.", pointwise(1));
  unary("erfcx", &erfcx, "exp(x²) erfc(x), without overflow.", pointwise(1));
  unary("log_ndtr", &log_ndtr, "The logarithm of ndtr, exact where that is near 0 or 1.",
        pointwise(1));
  unary("lgamma", &lgamma, "log |gamma(x)|.", pointwise(1));
  unary("digamma", &digamma, "The derivative of lgamma.", pointwise(1));
  visit(Op{"polygamma", "(...), (...) -> (...)",
           "Derivative n of digamma(x); it has a gradient in x only.", pointwise(1)},
        &polygamma, Arg{"n"}, Arg{"x"});
  visit(Op{"zeta", "(...), (...) -> (...)",
           "The sum of (q + k)^-(s + more) for k = 0, 1, ...; it has a gradient in q only.",
           pointwise(1)},
        &zeta, Arg{"s"}, Arg{"q"}, Arg{"more"});
  visit(Op{"arctan2", "(...), (...) -> (...)", "Angle in radians of the point (x2, x1).",
           pointwise(1)},
        &arctan2, Arg{"x1"}, Arg{"x2"});
  unary("sign", &sign, "-1, 0 or 1; it has no gradient.", pointwise(1, "Sign"));
  unary("floor", &floor, "x rounded down; it has no gradient.", pointwise(1, "Floor"));
  unary("ceil", &ceil, "x rounded up; it has no gradient.", pointwise(1, "Ceil"));
  unary("fix", &fix, "x rounded towards 0; it has no gradient.", pointwise(1));
  visit(Op{"fmod", "(...), (...) -> (...)", "The remainder of division, with the sign of x.",
           pointwise(1)},
        &fmod, Arg{"x"}, Arg{"divisor"});
}

}  // namespace renga
