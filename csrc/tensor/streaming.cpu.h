// Non-temporal stores. An ordinary store reads its cache line first, a third of the traffic of an
// operation on one array, and evicts other data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace renga {

// Whether an array of so many bytes does not fit in the caches anyway.
constexpr bool pays_streaming(std::int64_t bytes) { return bytes >= std::int64_t{1} << 25; }

inline bool starts_cache_line(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at) % 64 == 0;
}

// Writes a vector to an address that is a multiple of its size. Other threads may read what is
// streamed only after finish_streaming().
template <class Vector>
[[gnu::always_inline]] inline void stream(const Vector& v, void* to) {
  struct [[gnu::may_alias]] Bytes {
    std::byte data[sizeof(Vector)];
  };
#if defined(__x86_64__)
  asm("vmovntdq %1, %0" : "=m"(*static_cast<Bytes*>(to)) : "v"(v));
#else
  std::memcpy(to, &v, sizeof(Vector));
#endif
}

inline void finish_streaming() {
#if defined(__x86_64__)
  asm volatile("sfence" ::: "memory");
#else
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

// Copies n elements, efficiently if the destination is whole cache lines.
template <class T>
void stream(const T* from, T* to, std::int64_t n) {
  using Vector [[gnu::vector_size(32)]] = std::uint64_t;
  const auto bytes = static_cast<std::size_t>(n) * sizeof(T);
  if (!starts_cache_line(to) || bytes % 64 != 0) {
    std::memcpy(to, from, bytes);
    return;
  }
  const auto* x = reinterpret_cast<const std::byte*>(from);
  auto* y = reinterpret_cast<std::byte*>(to);
  for (std::size_t i = 0; i < bytes; i += sizeof(Vector)) {
    Vector v;
    std::memcpy(&v, x + i, sizeof v);
    stream(v, y + i);
  }
}

}  // namespace renga
