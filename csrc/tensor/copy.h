// The kernels behind copy() and fill(): one row per device.
#pragma once

#include "devices/kernel_table.h"
#include "tensor/array.h"

namespace renga {

struct CopyKernels {
  // Same shape and device; strides and dtypes may differ.
  void (*copy)(const Array& from, const Array& to);
  void (*fill)(const Array& x, double value);
};
extern KernelTable<CopyKernels> copy_kernels;

}  // namespace renga
