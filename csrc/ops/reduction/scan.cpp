#include "ops/reduction/scan.h"

#include "autograd/node.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<ScanKernels> scan_kernels{"scan"};

namespace {

std::vector<Range> full_ranges(const Variable& x) {
  std::vector<Range> ranges;
  for (int i = 0; i < x.ndim(); ++i) ranges.push_back({0, x.shape(i), 1});
  return ranges;
}

// x without its first or its last element along an axis.
Variable without_end(const Variable& x, int axis, bool last) {
  std::vector<Range> ranges = full_ranges(x);
  Range& range = ranges[static_cast<std::size_t>(axis)];
  range.length = std::max<std::int64_t>(range.length - 1, 0);
  range.start = last || range.length == 0 ? 0 : 1;
  return slice(x, ranges);
}

// An array for the result of the recurrence with a, and b of more than one element or not.
Array empty_result(const Array& a, const Array& b, int axis) {
  if (b.shape(axis) != 1) return empty_like(b);
  Shape shape = a.shape();
  ++shape[axis];
  return empty_in_order(shape, memory_order(a), a.dtype(), a.device());
}

// The recurrence of ScanKernels. Its gradients are recurrences, too.
Variable recur(const char* label, const Variable& a, const Variable& b, int axis, bool reverse) {
  const Array y = empty_result(a.array(), b.array(), axis);
  scan_kernels.on(y.device()).recur(a.array(), b.array(), axis, reverse, y);
  auto vjp_b = [=, is_one = b.shape(axis) == 1](const Variable& gy) {
    const Variable gb = recur(label, a, gy, axis, !reverse);
    if (!is_one) return gb;
    std::vector<Range> ranges = full_ranges(gb);
    Range& range = ranges[static_cast<std::size_t>(axis)];
    range = {reverse ? range.length - 1 : 0, 1, 1};
    return slice(gb, ranges);
  };
  auto vjp_a = [=, y = Saved(y)](const Variable& gy, GradientSink& to) {
    // Element i of a multiplies the element of y before it and is part of the one after it.
    const Variable from = without_end(y.of(to.node()), axis, !reverse);
    return multiply(from, without_end(recur(label, a, gy, axis, !reverse), axis, reverse));
  };
  return record(label, y, {{a, vjp_a}, {b, vjp_b}});
}

// Returns for each element the product of those before it along an axis.
Variable product_before(const char* label, const Variable& x, int axis) {
  if (x.shape(axis) == 0) return x;
  Shape first = x.shape();
  first[axis] = 1;
  const Variable from(broadcast_view(label, full({}, 1, x.dtype(), x.device()), first));
  return recur(label, without_end(x, axis, true), from, axis, false);
}

// x, or x as a flat array, and the axis to go along.
std::pair<Variable, int> line_of(const char* op, const Variable& x,
                                 std::optional<std::int64_t> axis) {
  require_floats(op, x.array(op));
  const Variable lines = axis ? x : flatten(x);
  return {lines, normalize_axis(op, axis.value_or(0), lines.ndim())};
}

}  // namespace

Variable cumsum(const Variable& x, std::optional<std::int64_t> over) {
  const auto [lines, axis] = line_of("cumsum", x, over);
  Shape shape = lines.shape();
  shape[axis] = std::max<std::int64_t>(shape[axis] - 1, 0);
  const Array one = full({}, 1, x.dtype(), x.device());
  return recur("cumsum", Variable(broadcast_view("cumsum", one, shape)), lines, axis, false);
}

Variable cumprod(const Variable& x, std::optional<std::int64_t> over) {
  const auto [lines, axis] = line_of("cumprod", x, over);
  const Array y = empty_like(lines.array());
  const Array first = slice_view(lines.array(), axis, 0, std::min<std::int64_t>(y.shape(axis), 1));
  scan_kernels.on(y.device()).recur(without_end(lines, axis, false).array(), first, axis, false, y);
  auto vjp_x = [lines = lines, axis = axis](const Variable& gy) {
    const Variable after = recur("cumprod", without_end(lines, axis, false), gy, axis, true);
    return multiply(product_before("cumprod", lines, axis), after);
  };
  return record("cumprod", y, {{lines, vjp_x}});
}

Variable product_of_others(const Variable& x, int axis, const Variable& factor) {
  if (x.shape(axis) == 0) return x;
  const Variable from = cast(factor, x.dtype());
  const Variable after = recur("Prod", without_end(x, axis, false), from, axis, true);
  return multiply(product_before("Prod", x, axis), after);
}

}  // namespace renga
