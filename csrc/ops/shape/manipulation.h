// Operations on shapes. The result is a view if strides allow it.
#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/list.h"

namespace renga {

// One extent may be -1: it is inferred.
Variable reshape(const Variable& x, const Shape& shape);
Variable transpose(const Variable& x, const std::optional<Axes>& axes = {});
Variable swapaxes(const Variable& x, std::int64_t axis1, std::int64_t axis2);
Variable broadcast_to(const Variable& x, const Shape& shape);
Variable expand_dims(const Variable& x, std::int64_t axis);
Variable squeeze(const Variable& x, const std::optional<Axes>& axes = {});
Variable flatten(const Variable& x);
Variable concat(const std::vector<Variable>& xs, std::int64_t axis = 1);
Variable stack(const std::vector<Variable>& xs, std::int64_t axis = 0);
// Splits x before each of `indices`.
std::vector<Variable> split_axis(const Variable& x, const std::vector<std::int64_t>& indices,
                                 std::int64_t axis);
// The slices of x along an axis, without it.
std::vector<Variable> separate(const Variable& x, std::int64_t axis = 0);
// `before` and `after` are the numbers of elements added at both ends of every axis.
Variable pad(const Variable& x, const Dims& before, const Dims& after, double value = 0);
Shape padded_shape(const Variable& x, const Dims& before, const Dims& after);
// Elements added that copy others of their axis, one axis after the other: the first and last one
// (edge), all of them again (wrap) or backwards, with those at the ends twice (symmetric) or once
// (reflect).
Variable pad_by_copy(const Variable& x, const Dims& before, const Dims& after,
                     const std::string& mode);
// A Variable of its own that shares the elements of x.
Variable identity(const Variable& x);
Variable cast(const Variable& x, Dtype dtype);
// IEEE floats of different widths are cast to the wider dtype; others are returned unchanged.
std::pair<Variable, Variable> promoted(const Variable& a, const Variable& b,
                                       const char* caller = __builtin_FUNCTION());
// The operands of an operation: those of bfloat16 are cast to float32 if one of them is float32.
template <std::same_as<Variable>... Operands>
std::array<Variable, sizeof...(Operands)> in_one_dtype(const char* op, const Operands&... xs) {
  const bool is_mixed =
      ((xs.dtype(op) == Dtype::bfloat16) || ...) && ((xs.dtype(op) == Dtype::float32) || ...);
  const auto widened = [=](const Variable& x) {
    return is_mixed && x.dtype() == Dtype::bfloat16 ? cast(x, Dtype::float32) : x;
  };
  return {widened(xs)...};
}

// Along every axis of x: `length` elements from `start`, `step` apart.
struct Range {
  std::int64_t start = 0, length = 0, step = 1;
};
Variable slice(const Variable& x, const std::vector<Range>& ranges);
// x[i, i + offset] of two axes, as the last axis.
Variable diagonal(const Variable& x, std::int64_t offset = 0, std::int64_t axis1 = 0,
                  std::int64_t axis2 = 1);

template <class Visit>
void list_manipulation_ops(Visit&& visit) {
  const Default<std::optional<Axes>> axes{"axes", std::nullopt};
  const Default<std::optional<Axes>> all{"axis", std::nullopt};
  visit(Op{"reshape", "(...) -> shape", "The elements in another shape."}, &reshape, Arg{"x"},
        Arg{"shape"});
  visit(Op{"transpose", "(...) -> (permuted)", "Axes in another order; reversed by default."},
        &transpose, Arg{"x"}, axes);
  visit(Op{"swapaxes", "(...) -> (permuted)", "Two axes exchanged."}, &swapaxes, Arg{"x"},
        Arg{"axis1"}, Arg{"axis2"});
  visit(Op{"broadcast_to", "(...) -> shape", "Repeated along axes of extent 1."}, &broadcast_to,
        Arg{"x"}, Arg{"shape"});
  visit(Op{"expand_dims", "(...) -> (... 1 ...)", "A new axis of extent 1.", along_axis()},
        &expand_dims, Arg{"x"}, Arg{"axis"});
  visit(Op{"squeeze", "(... 1 ...) -> (...)", "Without axes of extent 1.", along_axis()}, &squeeze,
        Arg{"x"}, all);
  visit(Op{"flatten", "(...) -> (n,)", "One axis."}, &flatten, Arg{"x"});
  visit(Op{"concat", "[(... a ...), (... b ...)] -> (... a+b ...)", "Arrays joined along an axis.",
           along_axis()},
        &concat, Arg{"xs"}, Default{"axis", std::int64_t{1}});
  visit(
      Op{"stack", "[(...), (...)] -> (... n ...)", "Arrays joined along a new axis.", along_axis()},
      &stack, Arg{"xs"}, Default{"axis", std::int64_t{0}});
  visit(Op{"split_axis", "(... a ...) -> [(... b ...), ...]", "Cut before each of the indices.",
           along_axis()},
        &split_axis, Arg{"x"}, Arg{"indices"}, Arg{"axis"});
  visit(Op{"separate", "(... n ...) -> [(...), ...]", "The slices along an axis, without it.",
           along_axis()},
        &separate, Arg{"x"}, Default{"axis", std::int64_t{0}});
  visit(Op{"pad", "(...) -> (longer)", "Elements of one value added at the ends of axes."}, &pad,
        Arg{"x"}, Arg{"before"}, Arg{"after"}, Default{"value", 0.0});
  visit(Op{"pad_by_copy", "(...) -> (longer)",
           "Copies of elements added at the ends of axes: edge, wrap, symmetric or reflect."},
        &pad_by_copy, Arg{"x"}, Arg{"before"}, Arg{"after"}, Arg{"mode"});
  visit(Op{"identity", "(...) -> (...)", "A new result with the same elements.",
           pointwise(0, "Identity")},
        &identity, Arg{"x"});
  using Cast = Variable (*)(const Variable&, Dtype);
  visit(Op{"cast", "(...) -> (...)", "Another dtype.", pointwise(0)}, Cast{&cast}, Arg{"x"},
        Arg{"dtype"});
  visit(Op{"slice", "(...) -> (shorter)", "(start, length, step) along every axis.", {}, "GetItem"},
        &slice, Arg{"x"}, Arg{"ranges"});
  visit(Op{"diagonal", "(... n ... m ...) -> (... k)", "x[i, i + offset] of two axes."}, &diagonal,
        Arg{"x"}, Default{"offset", std::int64_t{0}}, Default{"axis1", std::int64_t{0}},
        Default{"axis2", std::int64_t{1}});
}

}  // namespace renga
