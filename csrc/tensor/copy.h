// The kernels behind copy() and fill(): one row per device.
#pragma once

#include <span>

#include "devices/kernel_table.h"
#include "tensor/array.h"

namespace renga {

struct CopyKernels {
  // Same shape and device; strides and dtypes may differ.
  void (*copy)(const Array& from, const Array& to);
  void (*fill)(const Array& x, double value);
  // Same shape and dtype, contiguous, on two devices of the driver. nullptr where it cannot.
  void (*copy_across)(const Array& from, const Array& to) = nullptr;
  // Copies arrays to places along an axis of y, one after the other, row by row where each has a
  // part of every row; false, and nothing is copied, where there are no such rows. nullptr where it
  // cannot.
  bool (*join_rows)(std::span<const Array> xs, const Array& y, int axis) = nullptr;
};
extern KernelTable<CopyKernels> copy_kernels;

// Copies arrays to places along an axis of y, one after the other.
void join(std::span<const Array> xs, const Array& y, int axis);

}  // namespace renga
