// Inverses, determinants and triangular roots of square matrices.
#pragma once

#include "devices/kernel_table.h"
#include "ops/list.h"

namespace renga {

// These kernels take stacks of matrices (..., n, n), dense and row-major, of floats or doubles.
struct LinalgKernels {
  // Returns whether a matrix is singular; the inverses are then not all written.
  bool (*inverse)(const Array& a, const Array& y);
  void (*determinant)(const Array& a, const Array& y);
  // Writes the lower triangular y with y yᵀ = a, from the lower triangle of a. Returns whether an
  // `a` is not positive definite.
  bool (*cholesky)(const Array& a, const Array& y);
  void (*cholesky_grad)(const Array& y, const Array& gy, const Array& ga);
};
extern KernelTable<LinalgKernels> linalg_kernels;

// These are computed for each matrix of a stack.
Variable inv(const Variable& a);
Variable det(const Variable& a);
Variable cholesky(const Variable& a);

template <class Visit>
void list_linalg_ops(Visit&& visit) {
  visit(Op{"inv", "(..., n, n) -> (..., n, n)", "Inverses of matrices."}, &inv, Arg{"a"});
  visit(Op{"det", "(..., n, n) -> (...)", "Determinants of matrices.", Traits{.onnx = "Det"}}, &det,
        Arg{"a"});
  visit(Op{"cholesky", "(..., n, n) -> (..., n, n)",
           "Lower triangular L with L L^T = a, from the lower triangle of a."},
        &cholesky, Arg{"a"});
}

}  // namespace renga
