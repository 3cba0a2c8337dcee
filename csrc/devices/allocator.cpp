#include "devices/allocator.h"

#include <malloc.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "devices/forked_processes.h"
#include "devices/gil_release.h"
#include "devices/guarded_blocks.h"
#include "devices/large_blocks.h"
#include "devices/sanitizers.h"
#include "devices/streams.h"

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

  bool is_in_use() {
    const std::lock_guard lock(mutex_);
    return stats_.in_use > 0;
  }

  // Whether blocks stay in the cache when it is emptied.
  void keep(bool keeps) {
    const std::lock_guard lock(mutex_);
    keeps_ = keeps;
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
    driver_of(device_).finish_releases(device_.index);
    block = again();
    if (block != nullptr) return block;
    throw OutOfMemory("out of memory on " + to_string(device_) + ": requested " +
                      std::to_string(bytes) + " bytes, " + std::to_string(stats_.in_use) +
                      " bytes are in use");
  }

  void release_cached() {
    if (keeps_) return;
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
  ForkMutex mutex_;
  std::array<std::vector<void*>, std::size_t{4} * 13> free_;  // up to LargeBlocks::kMinBytes
  LargeBlocks large_;
  MemoryStats stats_;  // its `cached` is that of small blocks
  bool keeps_ = false;
};

MemoryStats operator+(const MemoryStats& a, const MemoryStats& b) {
  return {a.in_use + b.in_use,           a.peak + b.peak, a.cached + b.cached,
          a.allocations + b.allocations, a.hits + b.hits, a.reserves + b.reserves};
}

// The pools of a device: that of the default stream, and one for each other stream.
class DevicePools {
 public:
  explicit DevicePools(Device device) : device_(device), main_(device) {}

  void* take(std::size_t bytes) {
    void* const stream = device_.is_host() ? nullptr : current_stream(device_.index);
    if (stream == nullptr && !has_others_) return main_.take(bytes);
    const std::lock_guard lock(mutex_);
    Pool& pool = pool_of(stream);
    void* block = nullptr;
    try {
      block = pool.take(bytes);
    } catch (const OutOfMemory&) {
      for_each([](Pool& each) { each.empty(); });
      block = pool.take(bytes);
    }
    if (stream != nullptr) owners_[block] = stream;
    return block;
  }

  // Returns whether memory was released.
  bool give(void* block, std::size_t bytes) {
    if (!has_others_) {
      main_.give(block, bytes);
      return false;
    }
    const std::lock_guard lock(mutex_);
    void* stream = nullptr;
    if (const auto owner = owners_.find(block); owner != owners_.end()) {
      stream = owner->second;
      owners_.erase(owner);
    }
    const auto retired = retired_.find(block);
    if (retired != retired_.end()) return give_retired(retired, bytes);
    void* const user = current_stream(device_.index);
    if (user != stream && order_streams != nullptr) order_streams(stream, user, device_.index);
    pool_of(stream).give(block, bytes);
    return false;
  }

  void keep(void* stream) {
    const std::lock_guard lock(mutex_);
    pool_of(stream).keep(true);
  }

  void retire(void* stream) {
    const std::lock_guard lock(mutex_);
    const auto found = by_stream_.find(stream);
    if (found == by_stream_.end()) return;
    const std::shared_ptr<Pool> pool = std::move(found->second);
    by_stream_.erase(found);
    pool->keep(false);
    pool->empty();
    for (auto owner = owners_.begin(); owner != owners_.end();) {
      if (owner->second == stream) retired_[owner->first] = pool;
      owner = owner->second == stream ? owners_.erase(owner) : std::next(owner);
    }
  }

  MemoryStats stats() {
    const std::lock_guard lock(mutex_);
    MemoryStats all;
    for_each([&](Pool& pool) { all = all + pool.stats(); });
    return all;
  }

  void empty() {
    const std::lock_guard lock(mutex_);
    for_each([](Pool& pool) { pool.empty(); });
  }

 private:
  using Retired = std::map<void*, std::shared_ptr<Pool>>;

  bool give_retired(Retired::iterator found, std::size_t bytes) {
    found->second->give(found->first, bytes);
    const bool is_last = !found->second->is_in_use();
    if (is_last) found->second->empty();
    retired_.erase(found);
    return is_last;
  }

  // The following are called with the mutex locked.
  Pool& pool_of(void* stream) {
    if (stream == nullptr) return main_;
    std::shared_ptr<Pool>& pool = by_stream_[stream];
    if (!pool) pool = std::make_shared<Pool>(device_);
    has_others_ = true;
    return *pool;
  }
  template <class Visit>
  void for_each(const Visit& visit) {
    visit(main_);
    for (const auto& [_, pool] : by_stream_) visit(*pool);
    std::set<Pool*> retired;
    for (const auto& [_, pool] : retired_) retired.insert(pool.get());
    for (Pool* pool : retired) visit(*pool);
  }

  Device device_;
  Pool main_;
  ForkMutex mutex_;
  std::atomic<bool> has_others_{false};
  std::map<void*, std::shared_ptr<Pool>> by_stream_;
  std::map<void*, void*> owners_;  // the streams of blocks that are not of the default one
  Retired retired_;                // the pools of blocks whose stream is gone
};

DevicePools& pools_of(Device device) {
  // Pools are never destroyed: arrays held by Python may outlive every static of this library.
  static auto* host = new DevicePools(Device{});
  if (device.is_host()) return *host;
  static ForkMutex mutex;
  static auto* others = new std::map<std::pair<int, int>, std::unique_ptr<DevicePools>>;
  const std::lock_guard lock(mutex);
  auto& pools = (*others)[{device.driver, device.index}];
  if (!pools) pools = std::make_unique<DevicePools>(device);
  return *pools;
}

// Made before there are threads: a process that is forked meanwhile would wait for it forever.
[[maybe_unused]] const DevicePools& host_pools = pools_of(Device{});

// Takes a block of exactly `bytes`, without a lock and without statistics.
void* block_of_system(std::size_t bytes) {
  void* block = nullptr;
  if (kGuardsBlocks) {
    block = take_guarded_block(bytes);
  } else if (posix_memalign(&block, kSmallest, bytes) != 0) {
    block = nullptr;
  }
  if (block != nullptr) return block;
  throw OutOfMemory("out of memory: asked for " + std::to_string(bytes) + " bytes");
}

void give_to_system(void* block, std::size_t bytes) noexcept {
  kGuardsBlocks ? release_guarded_block(block, bytes) : std::free(block);
}

// After the locks of its pools: what the device computes may need threads that wait for these.
void finish_releases(Device device) {
  const GilRelease wait;
  driver_of(device).finish_releases(device.index);
}

bool is_pooled(Device device) { return kReusesBlocks || !device.is_host(); }

}  // namespace

void* allocate(std::size_t bytes, Device device) {
  if (device.is_meta()) return driver_of(device).reserve(bytes, device.index);
  return is_pooled(device) ? pools_of(device).take(bytes) : block_of_system(bytes);
}

void deallocate(void* block, std::size_t bytes, Device device) noexcept {
  if (device.is_meta()) return;
  if (!is_pooled(device)) return give_to_system(block, bytes);
  if (pools_of(device).give(block, bytes)) finish_releases(device);
}

void release_memory_of_stream(void* stream, Device device) {
  pools_of(device).retire(stream);
  finish_releases(device);
}
void keep_memory_of_stream(void* stream, Device device) { pools_of(device).keep(stream); }

MemoryStats memory_stats(Device device) { return pools_of(device).stats(); }

void empty_cache(Device device) {
  pools_of(device).empty();
  finish_releases(device);
#ifdef __GLIBC__
  // The C library, which allocates NumPy's arrays, keeps free memory below the end of its heap.
  if (device.is_host()) malloc_trim(0);
#endif
}

}  // namespace renga
