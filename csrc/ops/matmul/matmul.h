// Products of matrices.
#pragma once

#include <optional>
#include <span>

#include "devices/kernel_table.h"
#include "ops/list.h"
#include "ops/matmul/epilogue.h"
#include "ops/matmul/packed_weight_cache.h"

namespace renga {

struct MatmulKernels {
  // c = a b + epilogue. Shapes (m, k), (k, n), (m, n) with equal leading batch axes or none; any
  // strides for a and b, c row-major. All are of one dtype, or each is bfloat16 or float32. Only
  // pairs of matrices have a bias, of shape (n,), which does not accumulate. With a `cache`, a
  // kernel may keep the packed b there.
  void (*matmul)(const Array& a, const Array& b, const Array& c, const Epilogue& epilogue,
                 PackedWeightCache* cache);
  // Whether matmul may multiply so many rows by packed weights.
  bool (*packs)(std::int64_t rows, std::int64_t weights);
  // Whether the gradient of (m, n) weights by so many rows in all is best computed from parts of
  // the rows, at the precision that is set. Elsewhere the parts are joined first.
  bool (*multiplies_parts)(std::int64_t m, std::int64_t n, std::int64_t rows);
  // c = the sum of gyᵀ x over the parts: shapes (rows, m), (rows, n) and (m, n). All are float32,
  // each row is contiguous, and c is row-major.
  void (*multiply_parts)(std::span<const Array> gys, std::span<const Array> xs, const Array& c);
};
extern KernelTable<MatmulKernels> matmul_kernels;

// Multiplies as NumPy's matmul does: vectors, matrices and stacks of matrices whose leading axes
// broadcast.
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
