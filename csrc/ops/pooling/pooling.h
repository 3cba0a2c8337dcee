// Pooling of images.
#pragma once

#include <tuple>

#include "devices/kernel_table.h"
#include "ops/list.h"
#include "ops/shape/window.h"

namespace renga {

// Images are (N, C, rows, columns); x is the larger and y the smaller one, or their gradients.
// `indices` (uint8 if that suffices, else int32) has for each y the row-major index of its element
// in the window, or -1 (255) if the whole window lies in the padding.
struct PoolingKernels {
  // NaN is larger than any number, and of equal elements the first is taken.
  void (*max)(const Array& x, const Array& y, const Array& indices, const PoolingWindow& window);
  // y = x[indices], or 0 for index -1; and its transpose.
  void (*gather)(const Array& x, const Array& indices, const Array& y, const PoolingWindow& window);
  void (*scatter)(const Array& gy, const Array& indices, const Array& gx,
                  const PoolingWindow& window);
  // The sums of windows divided by `divisor`, padding counts as zeros; and its transpose.
  void (*sum)(const Array& x, const Array& y, const PoolingWindow& window, std::int64_t divisor);
  void (*spread)(const Array& y, const Array& x, const PoolingWindow& window, std::int64_t divisor);
};
extern KernelTable<PoolingKernels> pooling_kernels;

Variable max_pooling_2d(const Variable& x, const PoolingWindow& window, bool cover_all = true);
// This max pooling also returns the indices of the maxima in their windows, for unpooling.
std::tuple<Variable, Array> max_pooling_2d_with_indices(const Variable& x,
                                                        const PoolingWindow& window,
                                                        bool cover_all = true);
Variable average_pooling_2d(const Variable& x, const PoolingWindow& window);
// Each pixel at every position of its window in an image of these extents, summed where windows
// overlap.
Variable unpooling_2d(const Variable& x, const PoolingWindow& window, const Dims& extents);
// Each pixel at one position of its window, by row-major index, in an image of these extents; those
// outside are dropped.
Variable upsampling_2d(const Variable& x, const Array& indices, const PoolingWindow& window,
                       const Dims& extents);

template <class Visit>
void list_pooling_ops(Visit&& visit) {
  constexpr Traits pooling{.locality = Locality::planewise, .flops = {.per_window = 1}};
  const Default<bool> cover_all{"cover_all", true};
  visit(Op{"max_pooling_2d", "(N, C, H, W) -> (N, C, H', W')", "Largest element of each window.",
           pooling, "MaxPoolingND"},
        &max_pooling_2d, Arg{"x"}, Arg{"window"}, cover_all);
  visit(Op{"max_pooling_2d_with_indices", "(N, C, H, W) -> (N, C, H', W'), (N, C, H', W')",
           "Largest element of each window and its index in the window.", pooling},
        &max_pooling_2d_with_indices, Arg{"x"}, Arg{"window"}, cover_all);
  visit(Op{"average_pooling_2d", "(N, C, H, W) -> (N, C, H', W')",
           "Mean of each window; padding counts as zeros.", pooling},
        &average_pooling_2d, Arg{"x"}, Arg{"window"});
  visit(Op{"unpooling_2d", "(N, C, H, W) -> (N, C, H', W')",
           "Each pixel at every position of its window in an image of the extents (H', W'), summed "
           "where windows overlap.",
           Traits{.locality = Locality::planewise}, "Unpooling2D"},
        &unpooling_2d, Arg{"x"}, Arg{"window"}, Arg{"extents"});
  visit(Op{"upsampling_2d", "(N, C, H, W), (N, C, H, W) -> (N, C, H', W')",
           "Each pixel at one position of its window, by index, in an image of the extents "
           "(H', W'), zeros elsewhere.",
           Traits{.locality = Locality::planewise}, "Upsampling2D"},
        &upsampling_2d, Arg{"x"}, Arg{"indices"}, Arg{"window"}, Arg{"extents"});
}

}  // namespace renga
