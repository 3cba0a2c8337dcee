// Arithmetic on variables, with broadcasting.
#pragma once

#include <limits>

#include "lazy/fusion.h"
#include "ops/elementwise/elementwise.h"
#include "ops/list.h"

namespace renga {

Variable add(const Variable& a, const Variable& b);
Variable subtract(const Variable& a, const Variable& b);
Variable multiply(const Variable& a, const Variable& b);
Variable divide(const Variable& a, const Variable& b);
Variable floor_divide(const Variable& a, const Variable& b);
Variable power(const Variable& a, const Variable& b);
Variable maximum(const Variable& a, const Variable& b);
Variable minimum(const Variable& a, const Variable& b);
Variable negative(const Variable& x);

// With a scalar operand.
Variable add(const Variable& x, double c);
Variable multiply(const Variable& x, double c);
Variable subtract_from(double c, const Variable& x);  // c - x
Variable divide_into(double c, const Variable& x);    // c / x
Variable floor_divide(const Variable& x, double c);
Variable floor_divide_into(double c, const Variable& x);
Variable power(const Variable& x, double n);
Variable power_of(double base, const Variable& x);  // base ** x

Variable clip(const Variable& x, double x_min, double x_max);
Variable where(const Array& condition, const Variable& x, const Variable& y);

// Records y = a + b, which the caller computes.
Variable record_sum(const Variable& a, const Variable& b, const Array& y);
// The sum of a deferred array and another one, in either order.
extern FusionRegistry<Variable(const Variable& a, const Variable& b)> addition_fusions;

// gy (a - b), where the difference is limited to -limit and limit: in one pass, unless it is to be
// differentiated.
Variable product_with_difference(const Variable& gy, const Variable& a, const Variable& b,
                                 double limit = std::numeric_limits<double>::infinity());
// (a - b)².
Variable squared_difference(const Variable& a, const Variable& b);
// p x + (1 - p) y.
Variable linear_interpolate(const Variable& p, const Variable& x, const Variable& y);
// Elements i and i + D / 2 of the last axis as the coordinates of points, rotated by angles of
// which the cosines and sines are given for the last two axes.
Variable rotate_pairs(const Variable& x, const Array& cosines, const Array& sines);

template <class Visit>
void list_arithmetic_ops(Visit&& visit) {
  using Pair = Variable (*)(const Variable&, const Variable&);
  visit(Op{"add", "(...), (...) -> (...)", "Sum of two arrays.", pointwise(1, "Add"), "_ + _"},
        Pair{&add}, Arg{"x1"}, Arg{"x2"});
  visit(Op{"subtract", "(...), (...) -> (...)", "Difference of two arrays.", pointwise(1, "Sub"),
           "_ - _"},
        &subtract, Arg{"x1"}, Arg{"x2"});
  visit(Op{"multiply", "(...), (...) -> (...)", "Product, element by element.", pointwise(1, "Mul"),
           "_ * _"},
        Pair{&multiply}, Arg{"x1"}, Arg{"x2"});
  visit(Op{"divide", "(...), (...) -> (...)", "Quotient, element by element.", pointwise(1, "Div"),
           "_ / _"},
        &divide, Arg{"x1"}, Arg{"x2"});
  visit(Op{"floor_divide", "(...), (...) -> (...)", "Quotient rounded down; it has no gradient.",
           pointwise(2), "_ // _"},
        Pair{&floor_divide}, Arg{"x1"}, Arg{"x2"});
  visit(
      Op{"power", "(...), (...) -> (...)", "x1 to the power of x2.", pointwise(1, "Pow"), "_ ** _"},
      Pair{&power}, Arg{"x1"}, Arg{"x2"});
  visit(Op{"maximum", "(...), (...) -> (...)", "The larger of two; the first where they are equal.",
           pointwise(1, "Max")},
        &maximum, Arg{"x1"}, Arg{"x2"});
  visit(Op{"minimum", "(...), (...) -> (...)",
           "The smaller of two; the first where they are equal.", pointwise(1, "Min")},
        &minimum, Arg{"x1"}, Arg{"x2"});
  visit(Op{"squared_difference", "(...), (...) -> (...)", "(x1 - x2)².", pointwise(2)},
        &squared_difference, Arg{"x1"}, Arg{"x2"});
  visit(Op{"linear_interpolate", "(...), (...), (...) -> (...)", "p x + (1 - p) y.", pointwise(4)},
        &linear_interpolate, Arg{"p"}, Arg{"x"}, Arg{"y"});
  visit(Op{"rotate_pairs", "(N, C, ..., L, D), (L, D / 2), (L, D / 2) -> (N, C, ..., L, D)",
           "Elements i and i + D / 2, rotated by the angles with these cosines and sines.",
           Traits{.locality = Locality::planewise, .inputs = 1, .flops = {.per_output = 3}}},
        &rotate_pairs, Arg{"x"}, Arg{"cosines"}, Arg{"sines"});
  visit(Op{"negative", "(...) -> (...)", "-x.", pointwise(1, "Neg"), "-_"}, &negative, Arg{"x"});
  visit(Op{"clip", "(...) -> (...)", "x limited to [x_min, x_max].", pointwise(2)}, &clip, Arg{"x"},
        Arg{"x_min"}, Arg{"x_max"});
  visit(Op{"where", "(...), (...), (...) -> (...)", "x where the condition holds, y elsewhere.",
           pointwise(0)},
        &where, Arg{"condition"}, Arg{"x"}, Arg{"y"});
}

}  // namespace renga
