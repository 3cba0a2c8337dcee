#include "devices/small_blocks.h"

#include <pthread.h>

#include <array>
#include <memory>
#include <new>

#include "devices/sanitizers.h"

namespace renga {
namespace {

constexpr std::size_t kStep = 64, kSizes = 16;

// A free block holds the link to the next one of its size.
struct Block {
  Block* next;
};

// The free blocks of a thread, by size.
struct FreeBlocks {
  std::array<Block*, kSizes> first{};
  std::array<std::size_t, kSizes> count{};
};

// A pool that gives nothing and takes nothing, as if it were full.
constexpr FreeBlocks closed() {
  FreeBlocks blocks;
  blocks.count.fill(kMaxCachedSmallBytes);
  return blocks;
}
// The pools of a thread before its first allocation and after its end: what other objects of the
// thread free then goes straight to the system.
constinit FreeBlocks not_begun = closed(), ended = closed();

// initial-exec: the address is an offset from the thread register, without a call, which would be
// most of the cost of an allocation.
[[gnu::tls_model("initial-exec")]] constinit thread_local FreeBlocks* pool = &not_begun;

std::size_t size_index(std::size_t bytes) { return bytes == 0 ? 0 : (bytes - 1) / kStep; }

void free_pool(void* own) {
  pool = &ended;
  auto* const blocks = static_cast<FreeBlocks*>(own);
  for (std::size_t size = 0; size < kSizes; ++size) {
    while (Block* const block = blocks->first[size]) {
      blocks->first[size] = block->next;
      ::operator delete(block, (size + 1) * kStep);
    }
  }
  delete blocks;
}

// POSIX frees the pool of a thread when the thread ends.
void make_pool() {
  static const pthread_key_t key = [] {
    pthread_key_t made = 0;
    if (pthread_key_create(&made, &free_pool) != 0) throw std::bad_alloc();
    return made;
  }();
  auto own = std::make_unique<FreeBlocks>();
  if (pthread_setspecific(key, own.get()) != 0) throw std::bad_alloc();
  pool = own.release();
}

[[gnu::noinline]] void* allocate_from_system(std::size_t bytes) {
  if (pool == &not_begun) make_pool();
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
  if (size >= kSizes || free->first[size] == nullptr) return allocate_from_system(bytes);
  Block* const block = free->first[size];
  free->first[size] = block->next;
  --free->count[size];
  return block;
}

void free_small_block(void* block, std::size_t bytes) noexcept {
  if (!kReusesBlocks) return ::operator delete(block, bytes);
  const std::size_t size = size_index(bytes);
  FreeBlocks* const free = pool;
  if (size >= kSizes || (free->count[size] + 1) * (size + 1) * kStep > kMaxCachedSmallBytes) {
    return free_to_system(block, bytes);
  }
  free->first[size] = new (block) Block{free->first[size]};
  ++free->count[size];
}

std::size_t cached_small_bytes() {
  std::size_t bytes = 0;
  if (pool == &not_begun || pool == &ended) return 0;
  for (std::size_t size = 0; size < kSizes; ++size) {
    bytes += pool->count[size] * (size + 1) * kStep;
  }
  return bytes;
}

}  // namespace renga
