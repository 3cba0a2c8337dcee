#include "ops/matmul.h"

#include "autograd/gradient_buffer.h"
#include "autograd/node.h"
#include "ops/manipulation.h"
#include "ops/precision.h"
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

bool go_together(Dtype a, Dtype b) {
  const auto is_activation = [](Dtype d) { return d == Dtype::bfloat16 || d == Dtype::float32; };
  return a == b || (is_activation(a) && is_activation(b));
}

Array product(const Array& a, const Array& b, Dtype dtype) {
  if (a.ndim() == 2 && b.ndim() == 2) {
    const Array c = empty_gradient({a.shape(0), b.shape(1)}, dtype, a.device());
    matmul_kernels.on(c.device()).matmul(a, b, c, false);
    return c;
  }
  const Shape batch = broadcast_shapes("matmul", batch_of(a.shape()), batch_of(b.shape()));
  Shape shape = batch;
  shape.push_back(a.shape(a.ndim() - 2));
  shape.push_back(b.shape(b.ndim() - 1));
  const Array c = empty(shape, dtype, a.device());
  matmul_kernels.on(c.device()).matmul(stretched(a, batch), stretched(b, batch), c, false);
  return c;
}

// Of a bfloat16 and a float32 operand, `dtype` is the result's: gradients have that of what they
// belong to.
Variable matrix_product(const Variable& a, const Variable& b, bool transa, bool transb,
                        Dtype dtype) {
  const Array left = transa ? transposed(a.array()) : a.array();
  const Array right = transb ? transposed(b.array()) : b.array();
  const std::int64_t inner = left.shape(left.ndim() - 1);
  require(inner == right.shape(right.ndim() - 2), "matmul: expected ", inner,
          " rows in the second operand, got shapes ", left.shape(), " and ", right.shape());
  auto to_a = [b, transa, transb, shape = a.shape(), dtype = a.dtype()](const Variable& gy) {
    return sum_to(transa ? matrix_product(b, gy, transb, true, dtype)
                         : matrix_product(gy, b, false, !transb, dtype),
                  shape);
  };
  auto to_b = [a, transa, transb, shape = b.shape(), dtype = b.dtype()](const Variable& gy) {
    return sum_to(transb ? matrix_product(gy, a, true, transa, dtype)
                         : matrix_product(a, gy, !transa, false, dtype),
                  shape);
  };
  return record("MatMul", product(left, right, dtype), {{a, to_a}, {b, to_b}});
}

}  // namespace

Variable matmul(const Variable& given_a, const Variable& given_b, bool transa, bool transb) {
  const auto [a, b] = promoted(as_activation(given_a), as_activation(given_b));
  require(a.ndim() > 0 && b.ndim() > 0, "matmul: expected at least 1 axis, got shapes ", a.shape(),
          " and ", b.shape());
  require(go_together(a.dtype(), b.dtype()), "matmul: expected operands of one dtype, got ",
          a.dtype(), " and ", b.dtype());
  const Dtype dtype = std::min(a.dtype(), b.dtype());  // bfloat16 where one of them is
  if (a.ndim() > 1 && b.ndim() > 1) return matrix_product(a, b, transa, transb, dtype);
  // A vector is a row on the left and a column on the right; transposing it changes nothing.
  const Variable left = a.ndim() == 1 ? expand_dims(a, 0) : a;
  const Variable right = b.ndim() == 1 ? expand_dims(b, 1) : b;
  const Variable y =
      matrix_product(left, right, a.ndim() > 1 && transa, b.ndim() > 1 && transb, dtype);
  Axes extra;
  if (a.ndim() == 1) extra.push_back(y.ndim() - 2);
  if (b.ndim() == 1) extra.push_back(y.ndim() - 1);
  return squeeze(y, extra);
}

Variable linear(const Variable& given, const Variable& given_w, const std::optional<Variable>& b) {
  const Variable x = as_activation(given);
  const bool mixed = is_float(given_w.dtype()) && !go_together(x.dtype(), given_w.dtype());
  const Variable w = mixed && is_float(x.dtype()) ? cast(given_w, x.dtype()) : given_w;
  require(x.ndim() == 2 && w.ndim() == 2 && x.shape(1) == w.shape(1),
          "linear: expected x of shape (N, I) and W of shape (O, I), got ", x.shape(), " and ",
          w.shape());
  require(go_together(x.dtype(), w.dtype()) && is_float(x.dtype()),
          "linear: expected x and W of one float dtype, got ", x.dtype(), " and ", w.dtype());
  const Array y = empty({x.shape(0), w.shape(0)}, x.dtype(), x.device());
  if (b) {
    require(b->dtype() != given_w.dtype() || go_together(x.dtype(), b->dtype()),
            "linear: expected x of dtype ", given_w.dtype(), " as W and b, got ", x.dtype());
    require(b->ndim() == 1 && b->shape(0) == w.shape(0) && go_together(x.dtype(), b->dtype()),
            "linear: expected b of shape (", w.shape(0), ",) and dtype ", x.dtype(), ", got ",
            b->shape(), " and ", b->dtype());
    copy(broadcast_view("linear", b->array(), y.shape()), y);
  }
  matmul_kernels.on(y.device()).matmul(x.array(), transposed(w.array()), y, b.has_value());
  auto to_x = [w, dtype = x.dtype()](const Variable& gy) {
    return matrix_product(gy, w, false, false, dtype);
  };
  auto to_w = [x, dtype = w.dtype()](const Variable& gy) {
    return matrix_product(gy, x, true, false, dtype);
  };
  if (!b) return record("LinearFunction", y, {{x, to_x}, {w, to_w}});
  auto to_b = [](const Variable& gy) { return sum(gy, Axes{0}); };
  return record("LinearFunction", y, {{x, to_x}, {w, to_w}, {*b, to_b}});
}

}  // namespace renga
