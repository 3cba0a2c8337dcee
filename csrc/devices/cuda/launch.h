// The only way kernels are launched, and what all of them use. Kernels are launched on the current
// stream of an array's device; each thread loops over elements until all are done.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "devices/cuda/cuda.h"

namespace renga::cuda {

inline constexpr int kThreads = 256, kWarp = 32;

struct Grid {
  unsigned blocks;
  unsigned threads = kThreads;
  std::size_t shared_bytes = 0;
};

// A thread for each of n elements, or fewer that loop.
inline Grid grid_for(std::int64_t n) {
  constexpr std::int64_t kMostBlocks = 1 << 16;
  const std::int64_t threads = std::min<std::int64_t>(kThreads, (n + kWarp - 1) / kWarp * kWarp);
  return {static_cast<unsigned>(std::min(kMostBlocks, (n + threads - 1) / threads)),
          static_cast<unsigned>(threads)};
}

template <class... Parameters>
void launch(Device device, const Grid& grid, void (*kernel)(Parameters...),
            const std::type_identity_t<Parameters>&... arguments) {
  const Use use(device);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid.blocks);
  config.blockDim = dim3(grid.threads);
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream();
  constexpr std::size_t kShared = 48 << 10;  // a kernel may have more only if that is asked for
  if (grid.shared_bytes > kShared) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(grid.shared_bytes)),
          "cudaFuncSetAttribute");
  }
  check(cudaLaunchKernelEx(&config, kernel, arguments...), "cudaLaunchKernelEx");
}

// for (i = thread_index(); i < n; i += thread_count())
__device__ inline std::int64_t thread_index() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t thread_count() { return std::int64_t{gridDim.x} * blockDim.x; }

// The block's shared memory, of Grid::shared_bytes.
template <class T>
__device__ T* shared_memory() {
#ifdef __CUDACC__
  extern __shared__ __align__(16) double memory[];
  return reinterpret_cast<T*>(memory);
#else
  return static_cast<T*>(cuda_standin::shared_memory());
#endif
}

}  // namespace renga::cuda
