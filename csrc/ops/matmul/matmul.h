// Products of matrices.
#pragma once

#include <optional>

#include "devices/kernel_table.h"
#include "ops/list.h"

namespace renga {

struct MatmulKernels {
  // c = a b, or c += a b with `accumulate`. Shapes (m, k), (k, n), (m, n) with equal leading batch
  // axes or none; any strides for a and b, c row-major. All are of one dtype, or each is bfloat16
  // or float32.
  void (*matmul)(const Array& a, const Array& b, const Array& c, bool accumulate);
};
extern KernelTable<MatmulKernels> matmul_kernels;

// As NumPy's matmul: vectors, matrices and stacks of matrices whose leading axes broadcast.
Variable matmul(const Variable& a, const Variable& b, bool transa = false, bool transb = false);
// y = x W^T + b.
Variable linear(const Variable& x, const Variable& w, const std::optional<Variable>& b = {});

template <class Visit>
void list_matmul_ops(Visit&& visit) {
  constexpr Traits matrices{.flops = {.products = Products::matmul}};
  visit(Op{"matmul", "(... m k), (... k n) -> (... m n)", "Product of matrices or stacks of them.",
           matrices},
        &matmul, Arg{"a"}, Arg{"b"}, Default{"transa", false}, Default{"transb", false});
  visit(Op{"linear", "(N, I), (O, I), (O,) -> (N, O)", "x W^T + b.", weighted(Products::per_output),
           "LinearFunction"},
        &linear, Arg{"x"}, Arg{"W"}, Default<std::optional<Variable>>{"b", std::nullopt});
}

}  // namespace renga
