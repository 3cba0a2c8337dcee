// Pooling of images.
#pragma once

#include <tuple>

#include "devices/kernel_table.h"
#include "ops/list.h"
#include "ops/shape/window.h"

namespace renga {

// Images are (N, C, rows, columns), x the larger and y the smaller one, or their gradients. `at`
// (uint8 where that suffices, else int32) tells which element of its window each y is: its number
// in row-major order, or -1 (255) where the whole window lies in the padding.
struct PoolingKernels {
  // NaN is larger than any number, and of equal elements the first is taken.
  void (*max)(const Array& x, const Array& y, const Array& at, const PoolingWindow& window);
  // y = x[at], 0 where there is none; and its transpose.
  void (*take)(const Array& x, const Array& at, const Array& y, const PoolingWindow& window);
  void (*give)(const Array& gy, const Array& at, const Array& gx, const PoolingWindow& window);
  // Padding counts as zeros; and its transpose.
  void (*average)(const Array& x, const Array& y, const PoolingWindow& window);
  void (*average_grad)(const Array& gy, const Array& gx, const PoolingWindow& window);
};
extern KernelTable<PoolingKernels> pooling_kernels;

Variable max_pooling_2d(const Variable& x, const PoolingWindow& window, bool cover_all = true);
// Also which element of its window each maximum is, for the layers that undo the pooling.
std::tuple<Variable, Array> max_pooling_2d_with_indices(const Variable& x,
                                                        const PoolingWindow& window,
                                                        bool cover_all = true);
Variable average_pooling_2d(const Variable& x, const PoolingWindow& window);

template <class Visit>
void list_pooling_ops(Visit&& visit) {
  const Default<bool> cover_all{"cover_all", true};
  visit(Op{"max_pooling_2d", "(N, C, H, W) -> (N, C, H', W')", "Largest element of each window."},
        &max_pooling_2d, Arg{"x"}, Arg{"window"}, cover_all);
  visit(Op{"max_pooling_2d_with_indices", "(N, C, H, W) -> (N, C, H', W'), (N, C, H', W')",
           "Largest element of each window and its number in the window."},
        &max_pooling_2d_with_indices, Arg{"x"}, Arg{"window"}, cover_all);
  visit(Op{"average_pooling_2d", "(N, C, H, W) -> (N, C, H', W')",
           "Mean of each window; padding counts as zeros."},
        &average_pooling_2d, Arg{"x"}, Arg{"window"});
}

}  // namespace renga
