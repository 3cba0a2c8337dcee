// A device's large blocks, cut from segments of the system's memory and joined again when they are
// freed, so that cached memory serves requests of any size.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "devices/device.h"

namespace renga {

class LargeBlocks {
 public:
  // Smaller blocks come from size classes (allocator.cpp).
  static constexpr std::size_t kMinBytes = std::size_t{256} << 10;

  explicit LargeBlocks(Device device) : device_(device) {}
  LargeBlocks(const LargeBlocks&) = delete;
  LargeBlocks& operator=(const LargeBlocks&) = delete;

  // Returns the bytes that a block of at least `bytes` takes.
  static std::size_t rounded(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

  struct Allocation {
    void* block;      // nullptr where the system has no more memory
    bool was_cached;  // all of it was touched before
  };
  Allocation allocate(std::size_t bytes);
  void free(void* block);

  // Bytes of free memory that was touched before.
  std::size_t cached() const { return cached_; }
  // Gives that memory back to the system, as far as the device can.
  void release_cached();

 private:
  static constexpr std::size_t kPage = 4096;
  // Untouched pages are not backed by memory, so segments are larger than most blocks.
  static constexpr std::size_t kSegment = std::size_t{64} << 20;

  // Cached memory is preferred: the first touch of a fresh page is expensive.
  enum class State { allocated, cached, fresh };
  struct Block {
    std::size_t bytes;
    State state;
    bool starts_segment;
  };
  using Blocks = std::map<std::byte*, Block>;
  using Sizes = std::set<std::pair<std::size_t, std::byte*>>;

  Sizes& free_of(State state) { return state == State::cached ? cached_blocks_ : fresh_blocks_; }
  void insert_free(Blocks::iterator block);
  void remove_free(Blocks::iterator block);
  Blocks::iterator mark_free(Blocks::iterator block, State state);
  bool merge_next(Blocks::iterator block);
  void* split(Blocks::iterator block, std::size_t bytes);
  void* extend_into_fresh(std::size_t bytes);
  bool add_segment(std::size_t bytes);
  Blocks::iterator release_segment(Blocks::iterator first, Blocks::iterator end);

  Device device_;
  Blocks blocks_;  // by address
  Sizes cached_blocks_, fresh_blocks_;
  std::size_t cached_ = 0;
};

}  // namespace renga
