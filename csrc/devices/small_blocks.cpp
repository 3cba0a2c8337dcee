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

// Found by an offset from the thread's register, without a call: this is most of the price of a
// block. nullptr before the thread's first block and after its last one, when it comes to its end.
[[gnu::tls_model("initial-exec")]] constinit thread_local FreeBlocks* mine = nullptr;
constinit thread_local bool ended = false;

// Lives as long as the thread. Blocks given back after it, by destructors of the thread's other
// objects, go straight to the system.
struct Owner {
  Owner() { mine = &blocks; }
  ~Owner() {
    mine = nullptr;
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

[[gnu::noinline]] void* fresh_block(std::size_t bytes) {
  if (mine == nullptr && !ended) {
    static thread_local Owner owner;
    mine = &owner.blocks;
  }
  const std::size_t size = size_index(bytes);
  return ::operator new(size < kSizes ? (size + 1) * kStep : bytes);
}

[[gnu::noinline]] void return_block(void* block, std::size_t bytes) noexcept {
  const std::size_t size = size_index(bytes);
  ::operator delete(block, size < kSizes ? (size + 1) * kStep : bytes);
}

}  // namespace

void* take_small_block(std::size_t bytes) {
  if (!kReusesBlocks) return ::operator new(bytes);
  const std::size_t size = size_index(bytes);
  FreeBlocks* const free = mine;
  if (size >= kSizes || free == nullptr || free->first[size] == nullptr) return fresh_block(bytes);
  Block* const block = free->first[size];
  free->first[size] = block->next;
  --free->count[size];
  return block;
}

void give_small_block(void* block, std::size_t bytes) noexcept {
  if (!kReusesBlocks) return ::operator delete(block, bytes);
  const std::size_t size = size_index(bytes);
  FreeBlocks* const free = mine;
  if (size >= kSizes || free == nullptr ||
      (free->count[size] + 1) * (size + 1) * kStep > kSmallBlocksKept) {
    return return_block(block, bytes);
  }
  free->first[size] = new (block) Block{free->first[size]};
  ++free->count[size];
}

std::size_t small_blocks_kept() {
  std::size_t bytes = 0;
  if (mine == nullptr) return 0;
  for (std::size_t size = 0; size < kSizes; ++size) {
    bytes += mine->count[size] * (size + 1) * kStep;
  }
  return bytes;
}

}  // namespace renga
