#include "shared_memory/shared_segment.h"

#include <cstring>
#include <sstream>

#include "context/backoff.h"
#include "context/pause.h"
#include "devices/gil_release.h"

namespace renga {

namespace {

constexpr std::size_t kPage = 4096;
// About 2 µs, less than it takes to release and reacquire the GIL.
constexpr int kShortSpins = 64;

}  // namespace

void SharedSegment::PublishedCall::store(const Call& call) {
  const auto* const from = reinterpret_cast<const std::byte*>(&call);
  for (std::size_t i = 0; i < std::size(words_); ++i) {
    std::uint64_t word;
    std::memcpy(&word, from + i * sizeof(word), sizeof(word));
    words_[i].store(word, std::memory_order_relaxed);
  }
}

Call SharedSegment::PublishedCall::load() const {
  Call call;
  auto* const to = reinterpret_cast<std::byte*>(&call);
  for (std::size_t i = 0; i < std::size(words_); ++i) {
    const std::uint64_t word = words_[i].load(std::memory_order_relaxed);
    std::memcpy(to + i * sizeof(word), &word, sizeof(word));
  }
  return call;
}

std::size_t SharedSegment::slots_bytes(int ranks) {
  return (static_cast<std::size_t>(ranks) * sizeof(Slot) + kPage - 1) / kPage * kPage;
}

std::size_t SharedSegment::bytes(int ranks) {
  return slots_bytes(ranks) + 2 * static_cast<std::size_t>(ranks) * kBufferBytes;
}

SharedSegment::SharedSegment(std::shared_ptr<std::byte> memory, int local_rank, int ranks,
                             int first_rank)
    : memory_(std::move(memory)),
      local_rank_(local_rank),
      ranks_(ranks),
      first_rank_(first_rank),
      operands_(static_cast<std::size_t>(ranks)) {}

std::byte* SharedSegment::buffer(int local_rank, int index) const {
  return memory_.get() + slots_bytes(ranks_) + (2 * local_rank + index) * kBufferBytes;
}

void SharedSegment::barrier(const CollectiveContext& context) {
  slot(local_rank_).barriers.store(++barriers_, std::memory_order_release);
  if (!spin_until_all_arrive()) wait_until_all_arrive(context);
  if (call_unchecked_) check_calls();
}

bool SharedSegment::has_arrived(int local_rank) const {
  return slot(local_rank).barriers.load(std::memory_order_acquire) >= barriers_;
}

bool SharedSegment::spin_until_all_arrive() const {
  int spins = 0;
  for (int r = 0; r < ranks_; ++r) {
    while (!has_arrived(r)) {
      if (++spins > kShortSpins) return false;
      pause_spinning();
    }
  }
  return true;
}

void SharedSegment::wait_until_all_arrive(const CollectiveContext& context) {
  const GilRelease lend;
  Backoff backoff(context);
  for (int r = 0; r < ranks_; ++r) {
    while (!has_arrived(r)) {
      if (!backoff.wait()) {
        std::vector<int> missing_ranks = missing();
        for (int& rank : missing_ranks) rank += first_rank_;
        throw_timeout(context, missing_ranks, last_calls_of_missing(context));
      }
      if (backoff.has_lost(first_rank_ + r)) {
        throw_rank_failed(context, first_rank_ + r, last_calls_of_missing(context));
      }
    }
  }
}

std::vector<int> SharedSegment::missing() const {
  std::vector<int> local_ranks;
  for (int r = 0; r < ranks_; ++r) {
    if (!has_arrived(r)) local_ranks.push_back(r);
  }
  return local_ranks;
}

std::string SharedSegment::last_calls_of_missing(const CollectiveContext& context) const {
  std::ostringstream text;
  for (const int r : missing()) {
    const Call calls[] = {slot(r).calls[0].load(), slot(r).calls[1].load()};
    const Call& call = calls[0].sequence > calls[1].sequence ? calls[0] : calls[1];
    if (call.sequence > 0 && call.sequence < context.call.sequence) {
      text << "; rank " << first_rank_ + r << " was last in " << call.text_and_site();
    }
  }
  return text.str();
}

void SharedSegment::publish(const Call& call) {
  const auto index = ++calls_ % 2;
  slot(local_rank_).calls[index].store(call);
  slot(local_rank_).digests[index] = call.digest();
  call_unchecked_ = true;
}

// Called after a barrier: a slot's call is overwritten only after the next one.
void SharedSegment::check_calls() {
  call_unchecked_ = false;
  const auto index = calls_ % 2;
  const std::uint64_t digest = slot(local_rank_).digests[index];
  bool all_match = true;
  for (int r = 0; r < ranks_; ++r) all_match = all_match && slot(r).digests[index] == digest;
  if (all_match) return;
  buffer_index_ = 0;  // different calls may have left the ranks at different buffers
  std::vector<Call> calls;
  for (int r = 0; r < ranks_; ++r) calls.push_back(slot(r).calls[index].load());
  require_matching(calls);
}

}  // namespace renga
