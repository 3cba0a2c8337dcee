// Sums and products of all elements up to each, by linear recurrences.
#pragma once

#include <optional>

#include "devices/kernel_table.h"
#include "ops/list.h"

namespace renga {

struct ScanKernels {
  // y[0] = b[0] and y[i] = a[i - 1] y[i - 1] + b[i] along `axis`, of which y and b have n elements
  // and a has n - 1; in reverse y[n - 1] = b[n - 1] and y[i] = a[i] y[i + 1] + b[i]. Where b has
  // one element, which y starts with, nothing is added to the products.
  void (*recur)(const Array& a, const Array& b, int axis, bool reverse, const Array& y);
};
extern KernelTable<ScanKernels> scan_kernels;

// Along an axis; of the flat array without one.
Variable cumsum(const Variable& x, std::optional<std::int64_t> axis = {});
Variable cumprod(const Variable& x, std::optional<std::int64_t> axis = {});
// Returns for each element the product of all others along an axis and of `factor`, which has one
// element there, without division.
Variable product_of_others(const Variable& x, int axis, const Variable& factor);

template <class Visit>
void list_scan_ops(Visit&& visit) {
  const Default<std::optional<std::int64_t>> flat{"axis", std::nullopt};
  visit(Op{"cumsum", "(...) -> (...)", "Sums of all elements up to each.", along_axis(1)}, &cumsum,
        Arg{"x"}, flat);
  visit(Op{"cumprod", "(...) -> (...)", "Products of all elements up to each.", along_axis(1)},
        &cumprod, Arg{"x"}, flat);
}

}  // namespace renga
