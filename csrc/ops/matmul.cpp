#include "ops/matmul.h"

#include "autograd/node.h"
#include "ops/manipulation.h"
#include "ops/reduction.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<MatmulKernels> matmul_kernels{"matmul"};

namespace {

Array transposed(const Array& x) {
  Axes axes;
  for (int i = 0; i < x.ndim(); ++i) axes.push_back(i);
  std::swap(axes[x.ndim() - 1], axes[x.ndim() - 2]);
  return transpose_view(x, axes);
}

Shape batch_of(const Shape& shape) {
  Shape batch = shape;
  batch.pop_back();
  batch.pop_back();
  return batch;
}

Array stretched(const Array& x, const Shape& batch) {
  Shape shape = batch;
  shape.push_back(x.shape(x.ndim() - 2));
  shape.push_back(x.shape(x.ndim() - 1));
  return broadcast_view("matmul", x, shape);
}

Array product(const Array& a, const Array& b) {
  const Shape batch = broadcast_shapes("matmul", batch_of(a.shape()), batch_of(b.shape()));
  Shape shape = batch;
  shape.push_back(a.shape(a.ndim() - 2));
  shape.push_back(b.shape(b.ndim() - 1));
  const Array c = empty(shape, a.dtype(), a.device());
  matmul_kernels.on(c.device()).matmul(stretched(a, batch), stretched(b, batch), c, false);
  return c;
}

Variable matrix_product(const Variable& a, const Variable& b, bool transa, bool transb) {
  const Array left = transa ? transposed(a.array()) : a.array();
  const Array right = transb ? transposed(b.array()) : b.array();
  const std::int64_t inner = left.shape(left.ndim() - 1);
  require(inner == right.shape(right.ndim() - 2), "matmul: expected ", inner,
          " rows in the second operand, got shapes ", left.shape(), " and ", right.shape());
  auto to_a = [b, transa, transb, shape = a.shape()](const Variable& gy) {
    return sum_to(transa ? matmul(b, gy, transb, true) : matmul(gy, b, false, !transb), shape);
  };
  auto to_b = [a, transa, transb, shape = b.shape()](const Variable& gy) {
    return sum_to(transb ? matmul(gy, a, true, transa) : matmul(a, gy, !transa, false), shape);
  };
  return record("MatMul", product(left, right), {{a, to_a}, {b, to_b}});
}

}  // namespace

Variable matmul(const Variable& a, const Variable& b, bool transa, bool transb) {
  require(a.ndim() > 0 && b.ndim() > 0, "matmul: expected at least 1 axis, got shapes ", a.shape(),
          " and ", b.shape());
  require(a.dtype() == b.dtype(), "matmul: expected operands of one dtype, got ", a.dtype(),
          " and ", b.dtype());
  if (a.ndim() > 1 && b.ndim() > 1) return matrix_product(a, b, transa, transb);
  // A vector is a row on the left and a column on the right; transposing it changes nothing.
  const Variable left = a.ndim() == 1 ? expand_dims(a, 0) : a;
  const Variable right = b.ndim() == 1 ? expand_dims(b, 1) : b;
  const Variable y = matrix_product(left, right, a.ndim() > 1 && transa, b.ndim() > 1 && transb);
  Axes extra;
  if (a.ndim() == 1) extra.push_back(y.ndim() - 2);
  if (b.ndim() == 1) extra.push_back(y.ndim() - 1);
  return squeeze(y, extra);
}

Variable linear(const Variable& x, const Variable& w, const std::optional<Variable>& b) {
  require(x.ndim() == 2 && w.ndim() == 2 && x.shape(1) == w.shape(1),
          "linear: expected x of shape (N, I) and W of shape (O, I), got ", x.shape(), " and ",
          w.shape());
  require(x.dtype() == w.dtype() && is_float(x.dtype()),
          "linear: expected x and W of one float dtype, got ", x.dtype(), " and ", w.dtype());
  const Array y = empty({x.shape(0), w.shape(0)}, x.dtype(), x.device());
  if (b) {
    require(b->ndim() == 1 && b->shape(0) == w.shape(0) && b->dtype() == x.dtype(),
            "linear: expected b of shape (", w.shape(0), ",) and dtype ", x.dtype(), ", got ",
            b->shape(), " and ", b->dtype());
    copy(broadcast_view("linear", b->array(), y.shape()), y);
  }
  matmul_kernels.on(y.device()).matmul(x.array(), transposed(w.array()), y, b.has_value());
  auto to_x = [w](const Variable& gy) { return matmul(gy, w); };
  auto to_w = [x](const Variable& gy) { return matmul(gy, x, true); };
  if (!b) return record("LinearFunction", y, {{x, to_x}, {w, to_w}});
  auto to_b = [](const Variable& gy) { return sum(gy, Axes{0}); };
  return record("LinearFunction", y, {{x, to_x}, {w, to_w}, {*b, to_b}});
}

}  // namespace renga
