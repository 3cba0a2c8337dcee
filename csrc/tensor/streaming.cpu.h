// Non-temporal stores. An ordinary store reads its cache line first, a third of the traffic of an
// operation on one array, and evicts other data.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <atomic>
#include <cstdint>
#include <cstring>

namespace renga {

// Whether an array of so many bytes does not fit in the caches anyway.
constexpr bool pays_streaming(std::int64_t bytes) { return bytes >= std::int64_t{1} << 25; }

// Copies n elements, efficiently if the destination is whole cache lines. Other threads may read
// only after finish_streaming().
#if defined(__AVX2__)
template <class T>
void stream(const T* from, T* to, std::int64_t n) {
  const auto bytes = static_cast<std::size_t>(n) * sizeof(T);
  constexpr std::size_t line = 64;
  if (reinterpret_cast<std::uintptr_t>(to) % line != 0 || bytes % line != 0) {
    std::memcpy(to, from, bytes);
    return;
  }
  const auto* x = reinterpret_cast<const __m256i*>(from);
  auto* y = reinterpret_cast<__m256i*>(to);
  for (std::size_t i = 0; i < bytes / sizeof(__m256i); ++i) {
    _mm256_stream_si256(y + i, _mm256_loadu_si256(x + i));
  }
}

inline void finish_streaming() { _mm_sfence(); }
#else
template <class T>
void stream(const T* from, T* to, std::int64_t n) {
  std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
}

inline void finish_streaming() { std::atomic_thread_fence(std::memory_order_release); }
#endif

}  // namespace renga
