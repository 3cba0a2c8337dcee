// Memory that all ranks of a node map, be they threads or processes: for each rank a slot with its
// progress and its call, and two staging buffers for chunks of its data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "context/collective_context.h"

namespace renga {

// Ranks are numbered within the node here: local ranks.
class SharedSegment {
 public:
  // A chunk should stay in the second-level cache together with those of the other ranks.
  static constexpr std::int64_t kBufferBytes = std::int64_t{1} << 19;

  // The size of a segment for `ranks` ranks. It has to be zero before the first use.
  static std::size_t bytes(int ranks);
  // Makes a segment for the ranks of the node, which are numbered from `first_rank` in the
  // communicator. It keeps `memory` alive.
  SharedSegment(std::shared_ptr<std::byte> memory, int local_rank, int ranks, int first_rank);

  int local_rank() const { return local_rank_; }
  int ranks() const { return ranks_; }

  // Double buffering: a rank that is one barrier ahead never overwrites what others still read.
  std::byte* buffer(int local_rank, int index) const;
  // Returns which of the two buffers the next chunk goes to; all ranks call it equally often.
  int next_buffer() { return buffer_index_ ^= 1; }

  // Scratch for one pointer per rank, so that small reductions allocate nothing.
  std::vector<const std::byte*>& operands() { return operands_; }

  // Publishes this rank's call; the next barrier throws CallMismatch unless all ranks' calls match.
  void publish(const Call& call);
  // Whether there was no barrier since the last call was published.
  bool is_call_unchecked() const { return call_unchecked_; }
  // Returns when every rank of the node has called it. Throws TimeoutError or RankFailed otherwise.
  void barrier(const CollectiveContext& context);

 private:
  // A call that may be read while its rank writes the next one. The reader may then see parts of
  // both, each of which is well formed: good enough for the text of an error.
  class PublishedCall {
   public:
    void store(const Call& call);
    Call load() const;

   private:
    std::atomic<std::uint64_t> words_[sizeof(Call) / sizeof(std::uint64_t)];
  };
  static_assert(sizeof(PublishedCall) == sizeof(Call));

  // The first cache line is read at every barrier; the calls only where digests differ.
  struct Slot {
    alignas(64) std::atomic<std::uint64_t> barriers;  // how many this rank has reached
    std::uint64_t digests[2];
    alignas(64) PublishedCall calls[2];
  };
  static std::size_t slots_bytes(int ranks);
  Slot& slot(int local_rank) const { return reinterpret_cast<Slot*>(memory_.get())[local_rank]; }
  bool has_arrived(int local_rank) const;
  // Whether every rank arrives within a few microseconds.
  bool spin_until_all_arrive() const;
  void wait_until_all_arrive(const CollectiveContext& context);
  // The local ranks that have not reached the current barrier.
  std::vector<int> missing() const;
  std::string last_calls_of_missing(const CollectiveContext& context) const;
  void check_calls();

  std::shared_ptr<std::byte> memory_;
  int local_rank_;
  int ranks_;
  int first_rank_;
  std::vector<const std::byte*> operands_;
  std::uint64_t barriers_ = 0;
  std::uint64_t calls_ = 0;
  bool call_unchecked_ = false;
  int buffer_index_ = 0;
};

}  // namespace renga
