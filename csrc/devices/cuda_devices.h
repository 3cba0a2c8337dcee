// The devices of CUDA. The functions are those of librenga_cuda, whose kernels serve all operations
// on arrays there.
//
//   const Device gpu = cuda::device();
//   net.to_device(gpu);
//   const Variable y = net(Variable(to_device(x, gpu)));
#pragma once

#include "devices/device.h"

namespace renga::cuda {

// How many devices there are.
int count();
// One of them. Throws std::runtime_error where there is none, or no driver or library for it.
Device device(int index = 0);

}  // namespace renga::cuda
