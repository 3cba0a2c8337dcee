#include "devices/small_blocks.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "devices/sanitizers.h"
#include "tensor/ref.h"

namespace renga {
namespace {

struct Counted final : RefCounted {
  explicit Counted(int& alive) : alive_(alive) { ++alive_; }
  ~Counted() override { --alive_; }
  int& alive_;
  char rest[300] = {};
};

std::vector<void*> take(std::size_t count, std::size_t bytes) {
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < count; ++i) {
    blocks.push_back(allocate_small_block(bytes));
    std::memset(blocks.back(), static_cast<int>(i), bytes);
  }
  return blocks;
}

void give(const std::vector<void*>& blocks, std::size_t bytes) {
  for (void* block : blocks) free_small_block(block, bytes);
}

TEST_CASE("a small block that was given back is the next one handed out" *
          doctest::skip(!kReusesBlocks)) {
  void* const first = allocate_small_block(100);
  free_small_block(first, 100);
  void* const again = allocate_small_block(110);  // the same size of 128
  CHECK(again == first);
  free_small_block(again, 110);
}

TEST_CASE("small blocks are aligned and do not overlap, whatever their sizes") {
  std::vector<std::pair<std::uintptr_t, std::size_t>> taken;
  for (std::size_t bytes = 0; bytes <= 2048; bytes += 31) {
    taken.emplace_back(reinterpret_cast<std::uintptr_t>(allocate_small_block(bytes)), bytes);
  }
  for (const auto& [at, bytes] : taken) {
    CHECK(at % alignof(std::max_align_t) == 0);
    for (const auto& [other, size] : taken) {
      CHECK((at == other || at + bytes <= other || other + size <= at));
    }
  }
  for (const auto& [at, bytes] : taken) free_small_block(reinterpret_cast<void*>(at), bytes);
}

TEST_CASE("a thread keeps a bounded number of small blocks" * doctest::skip(!kReusesBlocks)) {
  std::thread([] {
    const std::size_t bytes = 512, count = 4 * kMaxCachedSmallBytes / bytes;
    give(take(count, bytes), bytes);
    CHECK(cached_small_bytes() == kMaxCachedSmallBytes);
    give(take(3, 1), 1);
    CHECK(cached_small_bytes() == kMaxCachedSmallBytes + 3 * 64);
    give(take(3, 4096), 4096);  // not small: straight to the system
    CHECK(cached_small_bytes() == kMaxCachedSmallBytes + 3 * 64);
  }).join();
}

TEST_CASE("objects made on one thread may die on another, also while that comes to its end") {
  int alive = 0;
  std::vector<Ref<Counted>> made;
  for (int i = 0; i < 1000; ++i) made.push_back(make_ref<Counted>(alive));
  std::thread([mine = std::move(made), &alive]() mutable {
    static thread_local std::vector<Ref<Counted>> last;
    last.assign(mine.begin(), mine.begin() + 10);
    // Destroyed after the thread's list of blocks, because that comes into being later.
    Ref<Counted> local = make_ref<Counted>(alive);
    mine.clear();
    CHECK(alive == 11);
  }).join();
  CHECK(alive == 0);
}

TEST_CASE("vectors of small blocks hold what is put into them") {
  SmallVector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < 1000; ++i) numbers.push_back(i * i);
  for (std::int64_t i = 0; i < 1000; ++i) CHECK(numbers[static_cast<std::size_t>(i)] == i * i);
}

}  // namespace
}  // namespace renga
