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

}  // namespace

Variable softmax(const Variable& x, std::int64_t along) {
  const int axis = normalize_axis("softmax", along, x.ndim());
  const Array y = forward("softmax", x, axis, false);
  auto vjp_x = [y = Saved(y), axis](const Variable& gy) {
    const Variable p = y.get();
    return multiply(p, subtract(gy, sum(multiply(p, gy), Axes{axis}, true)));
  };
  return record("Softmax", y, {{x, vjp_x}});
}

Variable log_softmax(const Variable& x, std::int64_t along) {
  const int axis = normalize_axis("log_softmax", along, x.ndim());
  const Array y = forward("log_softmax", x, axis, true);
  auto vjp_x = [y = Saved(y), axis](const Variable& gy) {
    return subtract(gy, multiply(exp(y.get()), sum(gy, Axes{axis}, true)));
  };
  return record("LogSoftmax", y, {{x, vjp_x}});
}

}  // namespace renga
