// Stands in for NVIDIA's header: the language of kernels as plain C++.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "cuda_runtime_api.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

// The thread of a kernel that runs reads these.
#ifdef CUDA_STANDIN_THREADS
extern constinit thread_local dim3 threadIdx, blockIdx;
#else
extern dim3 threadIdx, blockIdx;
#endif
extern dim3 blockDim, gridDim;

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  void* attrs = nullptr;
  unsigned numAttrs = 0;
};

namespace cuda_standin {

// `are_readable` tells of a stream whether the arguments are, which graphs ask again.
cudaError_t launch(const cudaLaunchConfig_t& config, std::function<void()> body,
                   std::function<bool(cudaStream_t)> are_readable);
// Whether every pointer in an argument of a kernel, members of structs included, is one that
// hardware can read on the stream's device.
bool are_readable_words(cudaStream_t stream, const void* argument, std::size_t bytes);
template <class T>
bool is_readable(cudaStream_t stream, T argument) {
  if constexpr (std::is_empty_v<T>) return true;
  __builtin_clear_padding(&argument);  // what is left there may look like an address
  return are_readable_words(stream, &argument, sizeof(T));
}
// The dynamic shared memory of the block that runs.
void* shared_memory();
// The value that the lane of this thread's warp with that number passes to the same call.
std::uint64_t exchange(unsigned mask, std::uint64_t value, unsigned lane);

template <class T>
T shuffle(unsigned mask, T value, unsigned lane) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = exchange(mask, bits, lane);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace cuda_standin

// Arguments are copied at the launch, as those of kernels are.
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  return cuda_standin::launch(
      *config, [kernel, ... copies = Parameters(arguments)] { kernel(copies...); },
      [... copies = Parameters(arguments)](cudaStream_t stream) {
        return (cuda_standin::is_readable(stream, copies) && ...);
      });
}

void __syncthreads();

// It does not order other memory.
inline int atomicCAS(int* address, int expected, int value) {
  __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  return cuda_standin::shuffle(mask, value, (threadIdx.x ^ static_cast<unsigned>(lanes)) % 32);
}
