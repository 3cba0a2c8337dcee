// Memory for the many small objects that every operation makes and soon forgets: variables, nodes,
// closures, the descriptions of arrays. Each thread keeps the blocks that it frees and hands them
// out again, without a lock.
#pragma once

#include <cstddef>
#include <vector>

namespace renga {

// What a thread keeps of one size, in bytes; there are sixteen sizes. What is freed beyond that
// goes back to the system.
inline constexpr std::size_t kSmallBlocksKept = std::size_t{256} << 10;

// A block of at least `bytes`, aligned as operator new's are. Any thread may give it back; `bytes`
// is the size asked for.
void* take_small_block(std::size_t bytes);
void give_small_block(void* block, std::size_t bytes) noexcept;

// Bytes that this thread keeps for reuse.
std::size_t small_blocks_kept();

// Objects of derived classes lie in small blocks.
class InSmallBlock {
 public:
  static void* operator new(std::size_t bytes) { return take_small_block(bytes); }
  static void operator delete(void* block, std::size_t bytes) noexcept {
    give_small_block(block, bytes);
  }
};

// For containers that mostly hold few elements.
template <class T>
struct SmallBlockAllocator {
  using value_type = T;
  SmallBlockAllocator() = default;
  template <class U>
  SmallBlockAllocator(const SmallBlockAllocator<U>&) noexcept {}
  T* allocate(std::size_t n) { return static_cast<T*>(take_small_block(n * sizeof(T))); }
  void deallocate(T* block, std::size_t n) noexcept { give_small_block(block, n * sizeof(T)); }
  bool operator==(const SmallBlockAllocator&) const noexcept { return true; }
};
template <class T>
using SmallVector = std::vector<T, SmallBlockAllocator<T>>;

}  // namespace renga
