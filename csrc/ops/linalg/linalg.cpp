#include "ops/linalg/linalg.h"

#include "autograd/node.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/matmul/matmul.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<LinalgKernels> linalg_kernels{"linalg"};

namespace {

// A stack of matrices as kernels take it.
Array matrices(const Array& a) {
  return to_device(contiguous(cast(a, wide_dtype(a.dtype()))),
                   linalg_kernels.computing(a.device()));
}

// A result for operand a.
Array as_result(const Array& y, const Array& a) {
  return cast(to_device(y, a.device()), a.dtype());
}

const LinalgKernels& checked(const char* op, const Variable& a) {
  require_floats(op, a.array(op));
  const int n = a.ndim();
  require(n >= 2 && a.shape(n - 1) == a.shape(n - 2), op,
          ": expected square matrices (..., n, n), got shape ", a.shape());
  return linalg_kernels.on(linalg_kernels.computing(a.device()));
}

// 1 below the diagonal and `diagonal` on it.
Array lower_mask(const Array& y, double diagonal) {
  const std::int64_t n = y.shape(y.ndim() - 1);
  const Array mask = zeros({n, n}, Dtype::float64);
  for (std::int64_t i = 0; i < n; ++i) {
    std::fill_n(mask.as<double>() + i * n, i, 1.0);
    mask.as<double>()[i * n + i] = diagonal;
  }
  return to_device(cast(mask, y.dtype()), y.device());
}

Variable transposed(const Variable& a) { return swapaxes(a, -1, -2); }

// With the product of yᵀ and gy of which the diagonal counts half, above 0 elsewhere: the symmetric
// part of y⁻ᵀ times it times y⁻¹ (Murray, Differentiation of the Cholesky decomposition, 2016).
Variable composed_cholesky_gradient(const Variable& y, const Variable& gy) {
  const Variable lower = multiply(y, Variable(lower_mask(y.array(), 1)));
  const Variable middle =
      multiply(matmul(lower, gy, true, false), Variable(lower_mask(y.array(), 0.5)));
  const Variable root = inv(lower);
  const Variable ga = matmul(matmul(root, middle, true, false), root);
  return multiply(add(ga, transposed(ga)), 0.5);
}

}  // namespace

Variable inv(const Variable& a) {
  const LinalgKernels& kernels = checked("inv", a);
  const Array wide = matrices(a.array()), inverses = empty_like(wide);
  require<std::invalid_argument>(!kernels.inverse(wide, inverses),
                                 "inv: expected regular matrices, got a singular one");
  const Array y = as_result(inverses, a.array());
  auto vjp_a = [y = Saved(y)](const Variable& gy, GradientSink& to) {
    const Variable inverse = y.of(to.node());
    return negative(matmul(matmul(inverse, gy, true, false), inverse, false, true));
  };
  return record("inv", y, {{a, vjp_a}});
}

Variable det(const Variable& a) {
  const LinalgKernels& kernels = checked("det", a);
  const Array wide = matrices(a.array());
  Shape stack = a.shape();
  stack.pop_back();
  stack.pop_back();
  const Array determinants = empty(stack, wide.dtype(), wide.device());
  kernels.determinant(wide, determinants);
  const Array y = as_result(determinants, a.array());
  auto vjp_a = [a, y = Saved(y)](const Variable& gy, GradientSink& to) {
    const Variable slope = multiply(gy, y.of(to.node()));
    return multiply(expand_dims(expand_dims(slope, -1), -1), transposed(inv(a)));
  };
  return record("det", y, {{a, vjp_a}});
}

Variable cholesky(const Variable& a) {
  const LinalgKernels& kernels = checked("cholesky", a);
  const Array wide = matrices(a.array()), roots = empty_like(wide);
  require<std::invalid_argument>(!kernels.cholesky(wide, roots),
                                 "cholesky: expected positive definite matrices, got another one");
  const Array y = as_result(roots, a.array());
  auto vjp_a = [y = Saved(y)](const Variable& gy, GradientSink& to) {
    const Variable root = y.of(to.node());
    if (backprop_enabled()) return composed_cholesky_gradient(root, gy);
    const Array lower = matrices(root.array()), ga = empty_like(lower);
    linalg_kernels.on(ga.device()).cholesky_grad(lower, matrices(gy.array()), ga);
    return Variable(as_result(ga, root.array()));
  };
  return record("cholesky", y, {{a, vjp_a}});
}

}  // namespace renga
