// CUDA as a device: the current device and stream, and the driver's place in the registry.
#pragma once

#include <cuda_runtime_api.h>

#include "devices/cuda/check.h"
#include "devices/device.h"

namespace renga::cuda {

// The driver's number, registered on the first call; its kernels register under it.
std::uint8_t number();
// Throws std::runtime_error where there is no device or no driver, which it names.
void require_devices();

// Makes a device the thread's current one for a scope.
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

// The stream on which this thread computes on the current device: the default stream unless set.
cudaStream_t stream();
// Sets the stream for a device. What follows on this stream waits for what is on the one before.
void set_stream(int index, cudaStream_t stream);

}  // namespace renga::cuda
