// Kernels over the elements of strided arrays: one thread an element.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "devices/cuda/cuda.h"
#include "tensor/strided_loop.h"

namespace renga::cuda {

// The merged axes of a StridedLoop as a kernel's argument.
template <int N>
struct ElementLoop {
  std::int64_t size;
  int ndim;
  std::int64_t extents[Dims::capacity];
  std::int64_t strides[N][Dims::capacity];  // in bytes
  std::byte* data[N];
};

template <int N>
ElementLoop<N> make_element_loop(const std::array<const Array*, N>& operands) {
  const StridedLoop<N> loop = make_loop<N>(operands);
  ElementLoop<N> elements{loop.size(), loop.extents.size(), {}, {}, {}};
  std::copy(loop.extents.begin(), loop.extents.end(), elements.extents);
  for (int k = 0; k < N; ++k) {
    std::copy(loop.strides[k].begin(), loop.strides[k].end(), elements.strides[k]);
    elements.data[k] = loop.data[k];
  }
  return elements;
}

// body(p): p[k] points at the same element of each operand.
template <int N, class Body>
__global__ void visit_elements(ElementLoop<N> elements, Body body) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements.size;
       i += step) {
    std::byte* p[N];
    for (int k = 0; k < N; ++k) p[k] = elements.data[k];
    std::int64_t rest = i;
    for (int axis = elements.ndim - 1; axis >= 0; --axis) {
      const std::int64_t at = rest % elements.extents[axis];
      rest /= elements.extents[axis];
      for (int k = 0; k < N; ++k) p[k] += at * elements.strides[k][axis];
    }
    body(p);
  }
}

template <int N, class Body>
void launch(const std::array<const Array*, N>& operands, const Body& body) {
  const ElementLoop<N> elements = make_element_loop<N>(operands);
  if (elements.size == 0) return;
  constexpr int kThreads = 256;
  const auto blocks = std::min<std::int64_t>((elements.size + kThreads - 1) / kThreads, 1 << 16);
  const Use use(operands[0]->device());
  visit_elements<<<static_cast<unsigned>(blocks), kThreads>>>(elements, body);
  RENGA_CUDA(cudaGetLastError());
}

// A core type as CUDA names it.
template <class T>
struct OnDevice {
  using type = T;
};
template <>
struct OnDevice<float16> {
  using type = __half;
};
template <>
struct OnDevice<bfloat16> {
  using type = __nv_bfloat16;
};

// The 16-bit floats convert by way of float32 only.
template <class To, class From>
__device__ To convert(From v) {
  constexpr bool from_half = std::is_same_v<From, __half> || std::is_same_v<From, __nv_bfloat16>;
  constexpr bool to_half = std::is_same_v<To, __half> || std::is_same_v<To, __nv_bfloat16>;
  if constexpr (std::is_same_v<From, To>) {
    return v;
  } else if constexpr (from_half) {
    return convert<To>(static_cast<float>(v));
  } else if constexpr (to_half) {
    return To(static_cast<float>(v));
  } else {
    return static_cast<To>(v);
  }
}

}  // namespace renga::cuda
