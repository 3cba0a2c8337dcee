// The kernels behind copy() and fill(): one row per device.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "devices/kernel_table.h"
#include "tensor/array.h"
#include "tensor/views.h"

namespace renga {

struct CopyKernels {
  // Same shape and device; strides and dtypes may differ.
  void (*copy)(const Array& from, const Array& to);
  void (*fill)(const Array& x, double value);
  // Same shape and dtype, contiguous, on two devices of the driver. nullptr where it cannot.
  void (*copy_across)(const Array& from, const Array& to) = nullptr;
  // Does what join() does, row by row where each array has a part of every row; false, and nothing
  // is copied, where there are no such rows. nullptr where it cannot.
  bool (*join_rows)(std::span<const Array* const> xs, const Array& y, int axis) = nullptr;
};
extern KernelTable<CopyKernels> copy_kernels;

// Copies arrays to places along an axis of y, one after the other.
void join(std::span<const Array* const> xs, const Array& y, int axis);

// Calls visit(x, its place in y) for each of these arrays that has elements, until one returns
// false.
template <class Visit>
bool visit_places(std::span<const Array* const> xs, const Array& y, int axis, const Visit& visit) {
  std::int64_t at = 0;
  for (const Array* x : xs) {
    const std::int64_t n = x->shape(axis);
    const Array to = slice_view(y, axis, std::exchange(at, at + n), n);
    if (to.size() > 0 && !visit(*x, to)) return false;
  }
  return true;
}

}  // namespace renga
