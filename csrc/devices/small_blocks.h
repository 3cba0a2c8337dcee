// A per-thread pool for the small, short-lived objects of every operation: variables, nodes, VJPs,
// array metadata. Each thread reuses the blocks that it frees, without a lock.
#pragma once

#include <cstddef>
#include <vector>

namespace renga {

// Bytes that a thread caches of each of the sixteen size classes; further blocks are freed.
inline constexpr std::size_t kMaxCachedSmallBytes = std::size_t{256} << 10;

// A block of at least `bytes`, aligned as by operator new. Any thread may free it; `bytes` is the
// requested size.
void* allocate_small_block(std::size_t bytes);
void free_small_block(void* block, std::size_t bytes) noexcept;

// Bytes that this thread caches.
std::size_t cached_small_bytes();

// Base of classes whose objects are allocated from the pool.
class SmallObject {
 public:
  static void* operator new(std::size_t bytes) { return allocate_small_block(bytes); }
  static void operator delete(void* block, std::size_t bytes) noexcept {
    free_small_block(block, bytes);
  }
};

// Containers that mostly hold few elements take this.
template <class T>
struct SmallBlockAllocator {
  using value_type = T;
  SmallBlockAllocator() = default;
  template <class U>
  SmallBlockAllocator(const SmallBlockAllocator<U>&) noexcept {}
  T* allocate(std::size_t n) { return static_cast<T*>(allocate_small_block(n * sizeof(T))); }
  void deallocate(T* block, std::size_t n) noexcept { free_small_block(block, n * sizeof(T)); }
  bool operator==(const SmallBlockAllocator&) const noexcept { return true; }
};
template <class T>
using SmallVector = std::vector<T, SmallBlockAllocator<T>>;

}  // namespace renga
