// The kernels behind copy() and fill(): one row per device.
#pragma once

#include "devices/kernel_table.h"
#include "tensor/array.h"

namespace renga {

struct CopyKernels {
  // Same shape and device; strides and dtypes may differ.
  void (*copy)(const Array& from, const Array& to);
  void (*fill)(const Array& x, double value);
  // Same shape and dtype, contiguous, on two devices of the driver. nullptr where it cannot.
  void (*copy_across)(const Array& from, const Array& to) = nullptr;
};
extern KernelTable<CopyKernels> copy_kernels;

}  // namespace renga
