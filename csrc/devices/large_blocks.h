// A device's large blocks, cut from segments of the system's memory and joined again when they are
// freed, so that memory that was used before serves requests of any size.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "devices/device.h"

namespace renga {

class LargeBlocks {
 public:
  // Smaller blocks are somebody else's.
  static constexpr std::size_t least = std::size_t{256} << 10;

  explicit LargeBlocks(Device device) : device_(device) {}
  LargeBlocks(const LargeBlocks&) = delete;
  LargeBlocks& operator=(const LargeBlocks&) = delete;

  // What a block of at least `bytes` takes.
  static std::size_t rounded(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

  struct Taken {
    void* block;    // nullptr where the system has no more memory
    bool was_used;  // before, all of it
  };
  Taken take(std::size_t bytes);
  void give(void* block);

  // Bytes of free memory that was used before.
  std::size_t cached() const { return cached_; }
  // Gives that memory back to the system, as far as the device can.
  void release_cached();

 private:
  static constexpr std::size_t kPage = 4096;
  // Memory that nobody has touched costs the host nothing, so segments are larger than most blocks.
  static constexpr std::size_t kSegment = std::size_t{64} << 20;

  // Free memory that was used before is handed out first, for a first touch is dear.
  enum class State { taken, used, fresh };
  struct Block {
    std::size_t bytes;
    State state;
    bool starts_segment;
  };
  using Blocks = std::map<std::byte*, Block>;
  using Sizes = std::set<std::pair<std::size_t, std::byte*>>;

  Sizes& free_of(State state) { return state == State::used ? used_ : fresh_; }
  void enter(Blocks::iterator block);
  void leave(Blocks::iterator block);
  Blocks::iterator free_up(Blocks::iterator block, State state);
  bool join_next(Blocks::iterator block);
  void* cut(Blocks::iterator block, std::size_t bytes);
  void* extend_into_fresh(std::size_t bytes);
  bool add_segment(std::size_t bytes);
  Blocks::iterator release_segment(Blocks::iterator first, Blocks::iterator end);

  Device device_;
  Blocks blocks_;  // by address
  Sizes used_, fresh_;
  std::size_t cached_ = 0;
};

}  // namespace renga
