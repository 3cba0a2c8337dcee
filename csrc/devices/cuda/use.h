// The current device of a scope, for all modules that are linked to CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include "devices/device.h"

namespace renga::cuda {

// Makes a device the thread's current one for a scope. Unchecked, as memory is also released where
// nothing may be thrown: what is wrong with the device shows in the calls that follow.
class Use {
 public:
  explicit Use(int index) {
    cudaGetDevice(&before_);
    if (before_ == index) {
      before_ = -1;
    } else {
      cudaSetDevice(index);
    }
  }
  explicit Use(Device device) : Use(device.index) {}
  // Not where nothing changed: setting a device creates a context on it.
  ~Use() {
    if (before_ >= 0) cudaSetDevice(before_);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  int before_ = 0;
};

}  // namespace renga::cuda
