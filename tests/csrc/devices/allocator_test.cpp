#include "devices/allocator.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "devices/sanitizers.h"

using namespace renga;

TEST_CASE("blocks are aligned to 64 bytes and do not overlap") {
  std::vector<std::pair<char*, std::size_t>> blocks;
  for (std::size_t bytes : {1, 63, 64, 65, 1000, 4096, 100000, 3 << 20, 17 << 20}) {
    auto* block = static_cast<char*>(allocate(bytes, Device{}));
    CHECK(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
    std::memset(block, static_cast<int>(blocks.size()), bytes);
    blocks.emplace_back(block, bytes);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    CHECK(blocks[i].first[0] == static_cast<char>(i));
    CHECK(blocks[i].first[blocks[i].second - 1] == static_cast<char>(i));
    deallocate(blocks[i].first, blocks[i].second, Device{});
  }
}

TEST_CASE("a freed block is handed out again without asking the system" *
          doctest::skip(!kReusesBlocks)) {
  void* first = allocate(5 << 20, Device{});
  deallocate(first, 5 << 20, Device{});
  const MemoryStats before = memory_stats(Device{});
  void* second = allocate((5 << 20) - 100, Device{});
  const MemoryStats after = memory_stats(Device{});
  CHECK(first == second);
  CHECK(after.reserves == before.reserves);
  CHECK(after.hits == before.hits + 1);
  CHECK(after.in_use > before.in_use);
  deallocate(second, (5 << 20) - 100, Device{});
  CHECK(memory_stats(Device{}).in_use == before.in_use);
}

TEST_CASE("blocks that the system gives are counted" * doctest::skip(!kReusesBlocks)) {
  const std::size_t bytes = std::size_t{200} << 20;  // more than a segment of smaller ones
  empty_cache(Device{});
  const MemoryStats before = memory_stats(Device{});
  void* block = allocate(bytes, Device{});
  const MemoryStats after = memory_stats(Device{});
  CHECK(after.reserves == before.reserves + 1);
  CHECK(after.allocations == before.allocations + 1);
  deallocate(block, bytes, Device{});
}

TEST_CASE("a block wastes at most a quarter of what was asked for" *
          doctest::skip(!kReusesBlocks)) {
  for (std::size_t bytes = 65; bytes < (1u << 22); bytes += bytes / 7 + 1) {
    const MemoryStats before = memory_stats(Device{});
    void* block = allocate(bytes, Device{});
    const auto taken = static_cast<double>(memory_stats(Device{}).in_use - before.in_use);
    CHECK(taken >= static_cast<double>(bytes));
    CHECK(taken <= 1.25 * static_cast<double>(bytes) + 64);
    deallocate(block, bytes, Device{});
  }
}

TEST_CASE("running out of memory names the size and leaves the allocator working") {
  const std::size_t too_much = std::size_t{1} << 46;
  try {
    allocate(too_much, Device{});
    FAIL("expected OutOfMemory");
  } catch (const OutOfMemory& error) {
    CHECK(std::string(error.what()).find(std::to_string(too_much)) != std::string::npos);
  }
  void* block = allocate(100, Device{});
  CHECK(block != nullptr);
  deallocate(block, 100, Device{});
}

TEST_CASE("an emptied cache holds nothing" * doctest::skip(!kReusesBlocks)) {
  deallocate(allocate(1 << 20, Device{}), 1 << 20, Device{});
  CHECK(memory_stats(Device{}).cached > 0);
  empty_cache(Device{});
  CHECK(memory_stats(Device{}).cached == 0);
}

TEST_CASE("an emptied cache holds nothing between blocks in use" * doctest::skip(!kReusesBlocks)) {
  const std::size_t bytes = 5 << 20;
  empty_cache(Device{});
  void* const kept = allocate(bytes, Device{});
  deallocate(allocate(bytes, Device{}), bytes, Device{});
  CHECK(memory_stats(Device{}).cached > 0);
  empty_cache(Device{});
  CHECK(memory_stats(Device{}).cached == 0);
  deallocate(kept, bytes, Device{});
}
