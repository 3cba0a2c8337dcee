// Softmax along an axis.
#pragma once

#include "devices/kernel_table.h"
#include "ops/list.h"

namespace renga {

struct SoftmaxKernels {
  // y = softmax(x) along `axis`, or its logarithm.
  void (*softmax)(const Array& x, int axis, bool log, const Array& y);
  // The gradient of x, given y and its gradient; all of one dtype.
  void (*softmax_grad)(const Array& y, const Array& gy, int axis, bool log, const Array& gx);
  // y = log(sum(exp(x))) along `axis`, which y lacks; y is float32 for bfloat16.
  void (*logsumexp)(const Array& x, int axis, const Array& y);
};
extern KernelTable<SoftmaxKernels> softmax_kernels;

Variable softmax(const Variable& x, std::int64_t axis = 1);
Variable log_softmax(const Variable& x, std::int64_t axis = 1);

template <class Visit>
void list_softmax_ops(Visit&& visit) {
  visit(Op{"softmax", "(...) -> (...)", "exp(x) / sum(exp(x)) along an axis.", along_axis(3)},
        &softmax, Arg{"x"}, Default{"axis", std::int64_t{1}});
  visit(Op{"log_softmax", "(...) -> (...)", "Logarithm of softmax, exact where softmax is near 0.",
           along_axis(3)},
        &log_softmax, Arg{"x"}, Default{"axis", std::int64_t{1}});
}

}  // namespace renga
