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
  // c = the sum of gyᵀ x over parts of their rows: shapes (rows, m), (rows, n) and (m, n). All are
  // float32, each row is contiguous, and c is row-major.
  void (*weight_gradient)(std::span<const Array> gys, std::span<const Array> xs, const Array& c);
};
// Elsewhere, and where a device has no such kernel, the parts are joined first.
extern KernelTable<WeightGradientKernels> weight_gradient_kernels;

// Whether the gradient of (m, n) weights by so many rows in all is best computed from the parts.
inline bool gains_by_stacked_rows(std::int64_t m, std::int64_t n, std::int64_t rows) {
  return m > 128 && n >= 64 && rows >= 512;
}

// Whether x of so many rows is multiplied by panels of the weights, which may be kept. Fewer rows
// take less time than packing, and more gain nothing by it.
inline bool gains_by_panels(std::int64_t rows, std::int64_t weights) {
  return rows >= 20 && rows <= 128 && weights >= 1 << 14;
}

}  // namespace renga
