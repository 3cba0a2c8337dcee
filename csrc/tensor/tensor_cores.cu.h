// What kernels of 16-bit floats do with tensor cores, and copies into shared memory beside which a
// block computes. The threads of a warp call these functions together. CUDA's C++ has no names for
// them, so they are instructions of PTX, for sm_80 and later.
#pragma once

#include <cstdint>
#include <type_traits>

#include "devices/cuda/launch.h"
#include "tensor/half.h"

namespace renga::cuda {

// A thread's part of a matrix of 16 rows and 16 columns. Lane l has columns 2 (l % 4) and the next
// of row l / 4 in the first word, of row l / 4 + 8 in the second, and the same eight columns later
// in the others.
using Fragment = std::uint32_t[4];
// A thread's part of a sum of 16 rows and 8 columns: lane l has columns 2 (l % 4) and the next of
// row l / 4, then of row l / 4 + 8.
using Sums = float[4];

#ifdef __CUDACC__

// Addresses of shared memory are half as long as others.
using SharedAddress = std::uint32_t;
__device__ inline SharedAddress shared_address(const void* address) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(address));
}

// Copies 16 bytes, or a word of 4, into shared memory until a wait_for_copies(): zeros if they do
// not `exist`.
__device__ inline void copy_later(SharedAddress to, const void* from, bool exist) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(exist ? 16 : 0)
               : "memory");
}
__device__ inline void copy_word_later(SharedAddress to, const void* from, bool exist) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),
               "r"(exist ? 4 : 0)
               : "memory");
}
// Ends a group of copies of this thread, which may be empty.
__device__ inline void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for all of this thread's groups but the last `n`.
template <int n>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
}

// Loads four matrices of 8 rows and 8 columns, of which lane l passes the address of row l % 8 of
// matrix l / 8. Word i has matrix i: lane l gets columns 2 (l % 4) and the next of row l / 4.
__device__ inline void load_matrices(SharedAddress row, Fragment& words) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(row)
               : "memory");
}
// Loads the transposes of these matrices.
__device__ inline void load_transposed(SharedAddress row, Fragment& words) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(row)
               : "memory");
}

// Adds a b^T, where b has 8 rows and 16 columns: its words are two matrices of load_matrices().
template <class T>
__device__ void add_product(const Fragment& a, std::uint32_t b0, std::uint32_t b1, Sums& sums) {
  if constexpr (std::is_same_v<T, float16>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    static_assert(std::is_same_v<T, bfloat16>);
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

// Two numbers in a word, the first in its lower half.
template <class T>
__device__ std::uint32_t pack(float first, float second) {
  std::uint32_t word;
  if constexpr (std::is_same_v<T, float16>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  }
  return word;
}

#else

using SharedAddress = std::uintptr_t;
inline SharedAddress shared_address(const void* address) {
  return reinterpret_cast<SharedAddress>(address);
}
inline void copy_later(SharedAddress to, const void* from, bool exist) {
  cuda_standin::copy_later(to, from, exist, 16);
}
inline void copy_word_later(SharedAddress to, const void* from, bool exist) {
  cuda_standin::copy_later(to, from, exist, 4);
}
inline void end_copies() { cuda_standin::end_copies(); }
template <int n>
void wait_for_copies() {
  cuda_standin::wait_for_copies(n);
}
inline void load_matrices(SharedAddress row, Fragment& words) {
  cuda_standin::load_matrices(row, false, words);
}
inline void load_transposed(SharedAddress row, Fragment& words) {
  cuda_standin::load_matrices(row, true, words);
}

template <class T>
void add_product(const Fragment& a, std::uint32_t b0, std::uint32_t b1, Sums& sums) {
  cuda_standin::add_product(a, b0, b1, sums, [](std::uint16_t bits) {
    T number;
    number.bits = bits;
    return static_cast<float>(number);
  });
}

template <class T>
std::uint32_t pack(float first, float second) {
  return T(first).bits | std::uint32_t{T(second).bits} << 16;
}

#endif

}  // namespace renga::cuda
