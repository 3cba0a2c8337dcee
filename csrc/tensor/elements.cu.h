// Kernels over the elements of strided arrays: one thread an element.
#pragma once

#include <cstdint>
#include <limits>

#include "devices/cuda/launch.h"
#include "tensor/convert.h"
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

  // Points p at element i of each operand.
  __device__ void locate(std::int64_t i, std::byte** p) const {
    for (int k = 0; k < N; ++k) p[k] = data[k];
    // Divisions of 32 bits take a fraction of the time.
    if (size <= std::numeric_limits<std::uint32_t>::max()) {
      step_to(static_cast<std::uint32_t>(i), p);
    } else {
      step_to(i, p);
    }
  }

 private:
  template <class Index>
  __device__ void step_to(Index i, std::byte** p) const {
    // The outermost axis needs no division.
    for (int axis = ndim - 1; axis >= 0; --axis) {
      const auto extent = static_cast<Index>(extents[axis]);
      const Index at = axis > 0 ? i % extent : i;
      if (axis > 0) i /= extent;
      for (int k = 0; k < N; ++k) p[k] += static_cast<std::int64_t>(at) * strides[k][axis];
    }
  }
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
  for (std::int64_t i = thread_index(); i < elements.size; i += thread_count()) {
    std::byte* p[N];
    elements.locate(i, p);
    body(p);
  }
}

// Operands of one shape; the first one's memory order decides.
template <int N, class Body>
void for_each_element(const std::array<const Array*, N>& operands, const Body& body) {
  const ElementLoop<N> elements = make_element_loop<N>(operands);
  if (elements.size == 0) return;
  launch(operands[0]->device(), grid_for(elements.size), visit_elements<N, Body>, elements, body);
}

// body(p) for operands of T without gaps, of which the first is written and the others are read:
// 16 bytes of each by one instruction, as single numbers of 16 bits take half of the bandwidth.
template <class T, int N, class Body>
__global__ void map_vectors(ElementLoop<N> elements, Body body) {
  constexpr int kWidth = 16 / sizeof(T);
  struct alignas(16) Vector {
    T values[kWidth];
  };
  const std::int64_t vectors = elements.size / kWidth;
  for (std::int64_t i = thread_index(); i < vectors; i += thread_count()) {
    Vector operands[N];
    for (int k = 1; k < N; ++k) {
      operands[k] = reinterpret_cast<const Vector*>(elements.data[k])[i];
    }
    for (int j = 0; j < kWidth; ++j) {
      std::byte* p[N];
      for (int k = 0; k < N; ++k) p[k] = reinterpret_cast<std::byte*>(&operands[k].values[j]);
      body(p);
    }
    reinterpret_cast<Vector*>(elements.data[0])[i] = operands[0];
  }
  std::int64_t i = vectors * kWidth + thread_index();
  for (; i < elements.size; i += thread_count()) {
    std::byte* p[N];
    for (int k = 0; k < N; ++k) p[k] = elements.data[k] + i * std::int64_t{sizeof(T)};
    body(p);
  }
}

// Whether map_vectors takes the operands.
template <class T, int N>
bool suits_vectors(const ElementLoop<N>& elements) {
  if (elements.ndim != 1) return false;
  for (int k = 0; k < N; ++k) {
    if (elements.strides[k][0] != sizeof(T)) return false;
    if (reinterpret_cast<std::uintptr_t>(elements.data[k]) % 16 != 0) return false;
  }
  return true;
}

// Does as for_each_element() with operands that all are of T: the first one is written.
template <class T, int N, class Body>
void map_elements(const std::array<const Array*, N>& operands, const Body& body) {
  const ElementLoop<N> elements = make_element_loop<N>(operands);
  if (elements.size == 0) return;
  const Device device = operands[0]->device();
  if constexpr (sizeof(T) == 2) {
    if (suits_vectors<T>(elements)) {
      const Grid grid = grid_for((elements.size * std::int64_t{sizeof(T)} + 15) / 16);
      return launch(device, grid, map_vectors<T, N, Body>, elements, body);
    }
  }
  launch(device, grid_for(elements.size), visit_elements<N, Body>, elements, body);
}

// An element of dtype T in the type in which kernels compute, and back.
template <class T>
__device__ Compute<T> load(const std::byte* p) {
  return static_cast<Compute<T>>(*reinterpret_cast<const T*>(p));
}
template <class T>
__device__ void store(std::byte* p, Compute<T> v) {
  *reinterpret_cast<T*>(p) = T(v);
}

}  // namespace renga::cuda
