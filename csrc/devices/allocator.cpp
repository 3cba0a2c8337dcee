#include "devices/allocator.h"

#include <array>
#include <bit>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "devices/large_blocks.h"
#include "devices/sanitizers.h"

namespace renga {
namespace {

// Size classes of small blocks: four per power of two, from 64 bytes up, so that at most a fifth of
// a block is lost.
constexpr std::size_t kSmallest = 64;

struct SizeClass {
  std::size_t index;
  std::size_t bytes;
};

SizeClass size_class(std::size_t bytes) {
  if (bytes <= kSmallest) return {0, kSmallest};
  const std::size_t floor = std::bit_floor(bytes - 1);
  const std::size_t quarter = floor / 4;
  const std::size_t step = (bytes - 1 - floor) / quarter + 1;
  const auto doublings = static_cast<std::size_t>(std::countr_zero(floor / kSmallest));
  return {1 + doublings * 4 + (step - 1), floor + quarter * step};
}

class Pool {
 public:
  explicit Pool(Device device) : device_(device), large_(device) {}

  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const LargeBlocks::Allocation taken =
        bytes < LargeBlocks::kMinBytes ? take_small(bytes) : take_large(bytes);
    ++stats_.allocations;
    ++(taken.was_cached ? stats_.hits : stats_.reserves);
    stats_.in_use += size_of_block(bytes);
    stats_.peak = std::max(stats_.peak, stats_.in_use);
    return taken.block;
  }

  void give(void* block, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes < LargeBlocks::kMinBytes) {
      free_[size_class(bytes).index].push_back(block);
      stats_.cached += size_of_block(bytes);
    } else {
      large_.free(block);
    }
    stats_.in_use -= size_of_block(bytes);
  }

  MemoryStats stats() {
    const std::lock_guard lock(mutex_);
    MemoryStats all = stats_;
    all.cached += static_cast<std::int64_t>(large_.cached());
    return all;
  }

  void empty() {
    const std::lock_guard lock(mutex_);
    release_cached();
  }

 private:
  static std::int64_t size_of_block(std::size_t bytes) {
    return static_cast<std::int64_t>(bytes < LargeBlocks::kMinBytes ? size_class(bytes).bytes
                                                                    : LargeBlocks::rounded(bytes));
  }

  LargeBlocks::Allocation take_small(std::size_t bytes) {
    const SizeClass kind = size_class(bytes);
    auto& kept = free_[kind.index];
    if (kept.empty()) {
      const auto reserve = [&] { return driver_of(device_).reserve(kind.bytes, device_.index); };
      return {found(reserve(), reserve, bytes), false};
    }
    void* const block = kept.back();
    kept.pop_back();
    stats_.cached -= static_cast<std::int64_t>(kind.bytes);
    return {block, true};
  }

  LargeBlocks::Allocation take_large(std::size_t bytes) {
    const LargeBlocks::Allocation first = large_.allocate(bytes);
    return {found(
                first.block, [&] { return large_.allocate(bytes).block; }, bytes),
            first.was_cached};
  }

  // The block; empties the cache and retries if it is nullptr.
  template <class Try>
  void* found(void* block, const Try& again, std::size_t bytes) {
    if (block != nullptr) return block;
    release_cached();
    block = again();
    if (block != nullptr) return block;
    throw OutOfMemory("out of memory on " + to_string(device_) + ": requested " +
                      std::to_string(bytes) + " bytes, " + std::to_string(stats_.in_use) +
                      " bytes are in use");
  }

  void release_cached() {
    Driver& driver = driver_of(device_);
    for (std::size_t i = 0; i < free_.size(); ++i) {
      for (void* block : free_[i]) driver.release(block, class_bytes(i), device_.index);
      free_[i].clear();
    }
    stats_.cached = 0;
    large_.release_cached();
  }

  static std::size_t class_bytes(std::size_t index) {
    if (index == 0) return kSmallest;
    const std::size_t floor = kSmallest << ((index - 1) / 4);
    return floor + floor / 4 * ((index - 1) % 4 + 1);
  }

  Device device_;
  std::mutex mutex_;
  std::array<std::vector<void*>, std::size_t{4} * 13> free_;  // up to LargeBlocks::kMinBytes
  LargeBlocks large_;
  MemoryStats stats_;  // its `cached` is that of small blocks
};

Pool& pool_of(Device device) {
  // Pools are never destroyed: arrays held by Python may outlive every static of this library.
  static auto* host = new Pool(Device{});
  if (device.is_host()) return *host;
  static std::mutex mutex;
  static auto* others = new std::map<std::pair<int, int>, std::unique_ptr<Pool>>;
  const std::lock_guard lock(mutex);
  auto& pool = (*others)[{device.driver, device.index}];
  if (!pool) pool = std::make_unique<Pool>(device);
  return *pool;
}

// Of exactly `bytes`, without a lock and without statistics.
void* block_of_system(std::size_t bytes) {
  void* block = nullptr;
  if (posix_memalign(&block, kSmallest, bytes) == 0) return block;
  throw OutOfMemory("out of memory: asked for " + std::to_string(bytes) + " bytes");
}

bool is_pooled(Device device) { return kReusesBlocks || !device.is_host(); }

}  // namespace

void* allocate(std::size_t bytes, Device device) {
  if (device.is_meta()) return driver_of(device).reserve(bytes, device.index);
  return is_pooled(device) ? pool_of(device).take(bytes) : block_of_system(bytes);
}

void deallocate(void* block, std::size_t bytes, Device device) noexcept {
  if (device.is_meta()) return;
  is_pooled(device) ? pool_of(device).give(block, bytes) : std::free(block);
}

MemoryStats memory_stats(Device device) { return pool_of(device).stats(); }

void empty_cache(Device device) { pool_of(device).empty(); }

}  // namespace renga
