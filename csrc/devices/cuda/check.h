// Errors of CUDA's calls, for all modules that are linked to it.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "devices/allocator.h"

namespace renga::cuda {

// Throws std::runtime_error with CUDA's own words, OutOfMemory for exhausted memory.
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  const std::string text = std::string("cuda: ") + cudaGetErrorString(status) + " in " + call;
  if (status == cudaErrorMemoryAllocation) throw OutOfMemory(text);
  throw std::runtime_error(text);
}
#define RENGA_CUDA(call) ::renga::cuda::check(call, #call)

}  // namespace renga::cuda
