// Reductions over axes, by default over all of them.
#pragma once

#include <optional>

#include "devices/kernel_table.h"
#include "ops/list.h"

namespace renga {

enum class Reduction : std::uint8_t { sum, sum_of_squares, prod, max, min };

struct ReductionKernels {
  // y has x's axes, the reduced ones with extent 1. Sums and products are computed in float64 or
  // int64, but for sums of a few 16-bit or float32 numbers at a time on the CPU; y is float32 for
  // bfloat16.
  void (*reduce)(Reduction map, const Array& x, const Axes& axes, const Array& y);
  // y is int32 and has x's axes without `axis`; the first index where several are equal.
  void (*arg)(Reduction map, const Array& x, int axis, const Array& y);
};
extern KernelTable<ReductionKernels> reduction_kernels;

// This takes arrays and normalized axes. Reduced axes have extent 1.
Array reduce(Reduction map, const Array& x, const Axes& axes);

Variable sum(const Variable& x, const std::optional<Axes>& axes = {}, bool keepdims = false);
Variable sum_of_squares(const Variable& x, const std::optional<Axes>& axes = {},
                        bool keepdims = false);
Variable prod(const Variable& x, const std::optional<Axes>& axes = {}, bool keepdims = false);
Variable max(const Variable& x, const std::optional<Axes>& axes = {}, bool keepdims = false);
Variable min(const Variable& x, const std::optional<Axes>& axes = {}, bool keepdims = false);
Variable logsumexp(const Variable& x, const std::optional<Axes>& axes = {});
// The sum over the axes along which `shape` was broadcast to x's shape.
Variable sum_to(const Variable& x, const Shape& shape);
Variable argmax(const Variable& x, std::optional<std::int64_t> axis = {});
Variable argmin(const Variable& x, std::optional<std::int64_t> axis = {});

template <class Visit>
void list_reduction_ops(Visit&& visit) {
  constexpr Traits to_shape{.flops = {.per_input = 1}};
  const Default<std::optional<Axes>> all{"axis", std::nullopt};
  visit(Op{"sum", "(...) -> (kept axes)", "Sum over axes.", along_axis(1)}, &sum, Arg{"x"}, all,
        Default{"keepdims", false});
  visit(Op{"sum_of_squares", "(...) -> (kept axes)", "Sum of x² over axes.", along_axis(2)},
        &sum_of_squares, Arg{"x"}, all, Default{"keepdims", false});
  visit(Op{"prod", "(...) -> (kept axes)", "Product over axes.", along_axis(1)}, &prod, Arg{"x"},
        all, Default{"keepdims", false});
  visit(Op{"max", "(...) -> (kept axes)", "Largest element over axes.", along_axis(1)}, &max,
        Arg{"x"}, all, Default{"keepdims", false});
  visit(Op{"min", "(...) -> (kept axes)", "Smallest element over axes.", along_axis(1)}, &min,
        Arg{"x"}, all, Default{"keepdims", false});
  visit(Op{"logsumexp", "(...) -> (kept axes)", "log(sum(exp(x))) over axes, without overflow.",
           along_axis(2)},
        &logsumexp, Arg{"x"}, all);
  visit(Op{"sum_to", "(...) -> shape", "Sum over the axes along which shape was broadcast.",
           to_shape},
        &sum_to, Arg{"x"}, Arg{"shape"});
  const Default<std::optional<std::int64_t>> flat{"axis", std::nullopt};
  visit(
      Op{"argmax", "(...) -> (kept axes)", "Index (int32) of the largest element.", along_axis(1)},
      &argmax, Arg{"x"}, flat);
  visit(
      Op{"argmin", "(...) -> (kept axes)", "Index (int32) of the smallest element.", along_axis(1)},
      &argmin, Arg{"x"}, flat);
}

}  // namespace renga
