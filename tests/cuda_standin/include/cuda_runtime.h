// Stands in for NVIDIA's header: the language of kernels as plain C++.
#pragma once

#include <array>
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
cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, std::function<void()> body,
                   std::function<bool(cudaStream_t)> are_readable);
cudaError_t set_most_shared(const void* kernel, int bytes);
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
// What each lane of this thread's warp passes to the same call: it is there until the next but one.
using Words = std::array<std::uint64_t, 3>;
const Words& exchange(unsigned mask, const Words& mine, unsigned lane);
// Another lane's words of the last exchange.
const Words& exchanged(unsigned lane);
// Waits for the threads of the warp, and orders their accesses to memory.
void wait_for_warp();

// Copies into shared memory, matrices of 16-bit numbers there and their products, as
// tensor_cores.cu.h tells of them.
void copy_later(std::uintptr_t to, const void* from, bool exist, std::size_t bytes);
void end_copies();
void wait_for_copies(int groups);
void load_matrices(std::uintptr_t row, bool are_transposed, std::uint32_t (&words)[4]);
void add_product(const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1, float (&sums)[4],
                 float (*number)(std::uint16_t bits));

template <class T>
T shuffle(unsigned mask, T value, unsigned lane) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
  Words words{};
  __builtin_memcpy(words.data(), &value, sizeof(T));
  __builtin_memcpy(&value, exchange(mask, words, lane).data(), sizeof(T));
  return value;
}

}  // namespace cuda_standin

// Arguments are copied at the launch, as those of kernels are.
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  return cuda_standin::launch(
      *config, reinterpret_cast<const void*>(kernel),
      [kernel, ... copies = Parameters(arguments)] { kernel(copies...); },
      [... copies = Parameters(arguments)](cudaStream_t stream) {
        return (cuda_standin::is_readable(stream, copies) && ...);
      });
}

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute, int value) {
  return cuda_standin::set_most_shared(reinterpret_cast<const void*>(kernel), value);
}

void __syncthreads();

// It does not order other memory.
inline int atomicCAS(int* address, int expected, int value) {
  __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

inline unsigned __ballot_sync(unsigned mask, bool vote) {
  cuda_standin::exchange(mask, {vote}, 0);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    votes |= static_cast<unsigned>(cuda_standin::exchanged(lane)[0]) << lane;
  }
  return votes;
}

inline void __syncwarp() { cuda_standin::wait_for_warp(); }

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  return cuda_standin::shuffle(mask, value, (threadIdx.x ^ static_cast<unsigned>(lanes)) % 32);
}
