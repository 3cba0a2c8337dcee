// The kernels of linear layers.
#pragma once

#include <span>

#include "devices/kernel_table.h"
#include "ops/matmul/packed_weight_cache.h"
#include "tensor/array.h"

namespace renga {

struct LinearKernels {
  // y = x wt + b for each row of y: shapes (m, k), (k, n), (n,) and (m, n). y is row-major, the
  // others have any strides; b may be undefined. x, wt and y are of one dtype, or each is bfloat16
  // or float32. With a `cache`, a kernel may keep the packed weights there.
  void (*linear)(const Array& x, const Array& wt, const Array& b, const Array& y,
                 PackedWeightCache* cache);
};
extern KernelTable<LinearKernels> linear_kernels;

struct WeightGradientKernels {
  // c = the sum of gyᵀ x over parts of their rows: shapes (rows, m), (rows, n) and (m, n). All gy
  // are of one dtype, and so are all x. c is row-major.
  void (*weight_gradient)(std::span<const Array> gys, std::span<const Array> xs, const Array& c);
};
// A device without such a kernel multiplies the joined parts.
extern KernelTable<WeightGradientKernels> weight_gradient_kernels;

// Whether x of so many rows is multiplied by panels of the weights, which may be kept. Fewer rows
// take less time than packing, and more gain nothing by it.
inline bool gains_by_panels(std::int64_t rows, std::int64_t weights) {
  return rows >= 20 && rows <= 128 && weights >= 1 << 14;
}

}  // namespace renga
