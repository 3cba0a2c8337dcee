// Tests launch these kernels, by launch().
#pragma once

#include <doctest/doctest.h>

#include <vector>

#include "cuda_runtime.h"

template <class... Parameters, class... Arguments>
cudaError_t launch(unsigned blocks, unsigned threads, std::size_t shared, cudaStream_t stream,
                   void (*kernel)(Parameters...), Arguments... arguments) {
  cudaLaunchConfig_t config;
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

inline float* device_floats(std::size_t n) {
  void* block = nullptr;
  REQUIRE(cudaMalloc(&block, n * sizeof(float)) == cudaSuccess);
  return static_cast<float*>(block);
}

inline std::vector<float> to_host(const float* x, std::size_t n) {
  std::vector<float> y(n);
  REQUIRE(cudaMemcpyAsync(y.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess);
  return y;
}

inline void fill(float* x, float value) { x[blockIdx.x * blockDim.x + threadIdx.x] = value; }

template <bool waits>
void reverse(float* y) {
  auto* shared = static_cast<float*>(cuda_standin::shared_memory());
  shared[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (waits) __syncthreads();
  y[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

inline void sum_of_warp(float* y) {
  float sum = static_cast<float>(threadIdx.x);
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  y[threadIdx.x] = sum;
}
