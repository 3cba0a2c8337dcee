// Memory that all ranks of a communicator see, be they threads or processes of one node: for each
// rank a slot that says how far it has come and a segment to lay pieces of its data on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "turn.h"

namespace renga {

class Board {
 public:
  // A piece should stay in the second-level cache together with its neighbours' pieces.
  static constexpr std::int64_t kSegment = std::int64_t{1} << 19;

  // How much memory a board for `size` ranks takes. It has to be zero before the first use.
  static std::size_t bytes(int size);
  // For the ranks from `first` on, of which this is the one at `place`. `owner` keeps `memory`
  // alive.
  Board(std::byte* memory, int place, int size, int first, std::shared_ptr<void> owner);

  // A rank's position among those of the board, and how many they are.
  int place() const { return place_; }
  int size() const { return size_; }

  // Two segments for each rank, used in turn: a rank that is ahead never overwrites what others
  // read.
  std::byte* segment(int place, int half) const;
  // Which half the next piece goes to.
  int next_half() { return half_ ^= 1; }

  // Room for an address of each place, so that joining what lies there needs no new memory.
  std::vector<const std::byte*>& operands() { return operands_; }

  // Says what this rank asks for; the next meeting throws unless all ranks ask for the same.
  void announce(const Call& call);
  // Whether no meeting has followed the last announcement.
  bool announced() const { return announced_; }
  // Waits until every rank has come as far as this one.
  void meet(const Turn& turn);

 private:
  // A call that another rank may read while it is written: then parts of two calls are seen, each
  // of which is well formed. That is good enough for the text of an error.
  class SharedCall {
   public:
    void store(const Call& call);
    Call load() const;

   private:
    std::atomic<std::uint64_t> words_[sizeof(Call) / sizeof(std::uint64_t)];
  };
  static_assert(sizeof(SharedCall) == sizeof(Call));

  // What others read at every meeting is one line; the calls are read when digests differ.
  struct Slot {
    alignas(64) std::atomic<std::uint64_t> steps;
    std::uint64_t digests[2];
    alignas(64) SharedCall calls[2];
  };
  Slot& slot(int place) const { return reinterpret_cast<Slot*>(memory_)[place]; }
  // Whether every rank comes as far as this one before others could make use of this core.
  bool come_at_once() const;
  void wait_for_all(const Turn& turn);
  // The places that have not come as far as this one.
  std::vector<int> missing() const;
  std::string last_calls(const Turn& turn) const;
  [[noreturn]] void nobody_came(const Turn& turn) const;
  void compare_calls();

  std::byte* memory_;
  int place_;
  int size_;
  int first_;
  std::shared_ptr<void> owner_;
  std::vector<const std::byte*> operands_;
  std::uint64_t steps_ = 0;
  std::uint64_t calls_ = 0;
  bool announced_ = false;
  int half_ = 0;
};

// Throws, naming two ranks that do not ask for the same. `calls` is in rank order.
void require_agreement(const std::vector<Call>& calls);

// Ranks do not ask for the same; nothing was moved, so the communicator can still be used.
class Disagreement : public InvalidType {
 public:
  using InvalidType::InvalidType;
};

}  // namespace renga
