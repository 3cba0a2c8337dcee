#include "devices/small_blocks.h"

#include <array>
#include <new>

#include "devices/sanitizers.h"

namespace renga {
namespace {

constexpr std::size_t kStep = 64, kSizes = 16;

// A free block holds the link to the next one of its size.
struct Block {
  Block* next;
};

struct FreeBlocks {
  std::array<Block*, kSizes> first{};
  std::array<std::size_t, kSizes> count{};
};

// initial-exec: the address is an offset from the thread register, without a call, which would be
// most of the cost of an allocation. nullptr before the thread's first allocation and after Owner
// is destroyed.
[[gnu::tls_model("initial-exec")]] constinit thread_local FreeBlocks* pool = nullptr;
constinit thread_local bool ended = false;

// Lives as long as the thread. Blocks freed after it, by destructors of other thread-local objects,
// go straight to the system.
struct Owner {
  Owner() { pool = &blocks; }
  ~Owner() {
    pool = nullptr;
    ended = true;
    for (std::size_t size = 0; size < kSizes; ++size) {
      while (Block* const block = blocks.first[size]) {
        blocks.first[size] = block->next;
        ::operator delete(block, (size + 1) * kStep);
      }
    }
  }
  FreeBlocks blocks;
};

std::size_t size_index(std::size_t bytes) { return bytes == 0 ? 0 : (bytes - 1) / kStep; }

[[gnu::noinline]] void* allocate_from_system(std::size_t bytes) {
  if (pool == nullptr && !ended) {
    static thread_local Owner owner;
    pool = &owner.blocks;
  }
  const std::size_t size = size_index(bytes);
  return ::operator new(size < kSizes ? (size + 1) * kStep : bytes);
}

[[gnu::noinline]] void free_to_system(void* block, std::size_t bytes) noexcept {
  const std::size_t size = size_index(bytes);
  ::operator delete(block, size < kSizes ? (size + 1) * kStep : bytes);
}

}  // namespace

void* allocate_small_block(std::size_t bytes) {
  if (!kReusesBlocks) return ::operator new(bytes);
  const std::size_t size = size_index(bytes);
  FreeBlocks* const free = pool;
  if (size >= kSizes || free == nullptr || free->first[size] == nullptr)
    return allocate_from_system(bytes);
  Block* const block = free->first[size];
  free->first[size] = block->next;
  --free->count[size];
  return block;
}

void free_small_block(void* block, std::size_t bytes) noexcept {
  if (!kReusesBlocks) return ::operator delete(block, bytes);
  const std::size_t size = size_index(bytes);
  FreeBlocks* const free = pool;
  if (size >= kSizes || free == nullptr ||
      (free->count[size] + 1) * (size + 1) * kStep > kMaxCachedSmallBytes) {
    return free_to_system(block, bytes);
  }
  free->first[size] = new (block) Block{free->first[size]};
  ++free->count[size];
}

std::size_t cached_small_bytes() {
  std::size_t bytes = 0;
  if (pool == nullptr) return 0;
  for (std::size_t size = 0; size < kSizes; ++size) {
    bytes += pool->count[size] * (size + 1) * kStep;
  }
  return bytes;
}

}  // namespace renga
