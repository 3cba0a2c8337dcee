// CUDA as a device: the current device and stream, and the driver's place in the registry.
#pragma once

#include <cuda_runtime_api.h>

#include "devices/cuda/check.h"
#include "devices/cuda/use.h"
#include "devices/device.h"

namespace renga::cuda {

// The driver's number, registered on the first call; its kernels register under it.
std::uint8_t number();
// Throws std::runtime_error where there is no device or no driver, which it names.
void require_devices();

// The stream on which this thread computes on the current device: the default stream unless set.
cudaStream_t stream();
// Sets the stream for a device. What follows on this stream waits for what is on the one before.
// Throws std::runtime_error if this thread records: what it computes there would belong to the
// graph where CUDA joins the streams, but not its memory and its random numbers.
void set_stream(int index, cudaStream_t stream);

}  // namespace renga::cuda
