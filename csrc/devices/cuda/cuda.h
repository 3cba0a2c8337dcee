// CUDA as a device: errors, the current device and the driver's place in the registry.
#pragma once

#include <cuda_runtime_api.h>

#include "devices/device.h"

namespace renga::cuda {

// Throws std::runtime_error with CUDA's own words, OutOfMemory for exhausted memory.
void check(cudaError_t status, const char* call);
#define RENGA_CUDA(call) ::renga::cuda::check(call, #call)

// The driver's number, registered on the first call; its kernels register under it.
std::uint8_t number();
// Devices present; throws std::runtime_error where there is none or no driver.
int count();

// Makes a device the thread's current one for a scope. All work goes to its default stream.
class Use {
 public:
  explicit Use(int index);
  explicit Use(Device device) : Use(device.index) {}
  ~Use();
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  int before_ = 0;
};

}  // namespace renga::cuda
