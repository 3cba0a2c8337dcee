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
  visit(Op{"negative", "(...) -> (...)", "-x.", pointwise(1, "Neg"), "-_"}, &negative, Arg{"x"});
  visit(Op{"clip", "(...) -> (...)", "x limited to [x_min, x_max].", pointwise(2)}, &clip, Arg{"x"},
        Arg{"x_min"}, Arg{"x_max"});
  visit(Op{"where", "(...), (...), (...) -> (...)", "x where the condition holds, y elsewhere.",
           pointwise(0)},
        &where, Arg{"condition"}, Arg{"x"}, Arg{"y"});
}

}  // namespace renga
