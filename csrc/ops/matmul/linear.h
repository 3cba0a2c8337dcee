// The kernel of linear layers, of devices that have one of their own.
#pragma once

#include "devices/kernel_table.h"
#include "tensor/array.h"

namespace renga {

struct LinearKernels {
  // y = x wt + b for each row of y: shapes (m, k), (k, n), (n,) and (m, n). y is row-major, the
  // others have any strides. x, wt and y are of one dtype, or each is bfloat16 or float32.
  void (*linear)(const Array& x, const Array& wt, const Array& b, const Array& y);
};
extern KernelTable<LinearKernels> linear_kernels;

// The same by a product that is added to y.
void linear_by_matmul(const Array& x, const Array& wt, const Array& b, const Array& y);

}  // namespace renga
