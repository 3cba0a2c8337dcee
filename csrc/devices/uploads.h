// Copies from the host to a device beside what the device computes.
#pragma once

#include <cstddef>

#include "devices/kernel_table.h"

namespace renga {

// Blocks of memory for such copies, which are kept for further ones. A block is written to once,
// before it is read; several threads may use different blocks.
struct UploadKernels {
  // A block of the host's memory that the device reads by itself.
  void (*take_pinned)(std::size_t bytes, int index, void** block);
  // At any time: copies from it go on.
  void (*give_pinned)(void* block);
  // A block of the device's memory.
  void (*take)(std::size_t bytes, int index, void** block);
  // Once nothing more will be started that uses it.
  void (*give)(void* block);
  // Starts a copy into a block, without waiting for what the device computes. `from` is read before
  // the call returns, unless it is pinned.
  void (*copy)(void* block, const void* from, std::size_t bytes, int index);
  // Has the current stream of the device wait for the copy.
  void (*wait)(void* block);
};
extern KernelTable<UploadKernels> upload_kernels;

}  // namespace renga
