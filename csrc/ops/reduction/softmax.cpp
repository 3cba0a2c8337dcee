#include "ops/reduction/softmax.h"

#include "autograd/node.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/math.h"
#include "ops/reduction/reduction.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<SoftmaxKernels> softmax_kernels{"softmax"};

namespace {

Array forward(const char* op, const Variable& x, int axis, bool log) {
  require(is_float(x.dtype()), op, ": expected a float dtype, got ", x.dtype());
  const Array y = empty_like(x.array());
  softmax_kernels.on(y.device()).softmax(x.array(), axis, log, y);
  return y;
}

// Computes the gradient in one pass, without a graph.
Variable gradient(const Array& y, const Variable& gy, int axis, bool log) {
  const Array gx = empty_like(y);
  softmax_kernels.on(y.device()).softmax_grad(y, gy.array(), axis, log, gx);
  return Variable(gx);
}

}  // namespace

Variable softmax(const Variable& x, std::int64_t along) {
  const int axis = normalize_axis("softmax", along, x.ndim());
  const Array y = forward("softmax", x, axis, false);
  auto vjp_x = [y = Saved(y), axis](const Variable& gy, GradientSink& to) {
    const Variable p = y.of(to.node());
    if (!backprop_enabled()) return gradient(p.array(), gy, axis, false);
    return multiply(p, subtract(gy, sum(multiply(p, gy), Axes{axis}, true)));
  };
  return record("Softmax", y, {{x, vjp_x}});
}

Variable log_softmax(const Variable& x, std::int64_t along) {
  const int axis = normalize_axis("log_softmax", along, x.ndim());
  const Array y = forward("log_softmax", x, axis, true);
  auto vjp_x = [y = Saved(y), axis](const Variable& gy, GradientSink& to) {
    const Variable log_p = y.of(to.node());
    if (!backprop_enabled()) return gradient(log_p.array(), gy, axis, true);
    return subtract(gy, multiply(exp(log_p), sum(gy, Axes{axis}, true)));
  };
  return record("LogSoftmax", y, {{x, vjp_x}});
}

}  // namespace renga
