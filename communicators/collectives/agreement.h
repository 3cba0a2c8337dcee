// Ranks that only exchange messages compare their calls before anything is moved. What is short
// goes in the same messages, so that the comparison costs it nothing.
#pragma once

#include <cstring>

#include "collectives/group.h"

namespace renga::by_messages {

// The first message of every collective from each rank to each other one, whatever it calls.
struct Opening {
  static constexpr std::int64_t kRoom = 504;
  std::uint64_t digest;
  std::byte data[kRoom];
};

// Up to so many ranks send one another openings; more compare in a number of steps that grows with
// its logarithm, and nothing goes along.
inline constexpr int kFewRanks = 16;

// Whether so many bytes go along with the comparison.
inline bool goes_along(const Turn& turn, std::int64_t bytes) {
  return turn.size() <= kFewRanks && bytes <= Opening::kRoom;
}

// Throws Disagreement on all ranks unless all ask for the same.
void agree(const Turn& turn);

// The openings received, in rank order; the one at this rank's place is not used.
class Openings {
 public:
  explicit Openings(const Turn& turn);
  std::byte* sent(int to) { return at(mine_, to).data; }
  const std::byte* received(int from) { return at(theirs_, from).data; }
  // Throws as agree() does.
  void exchange();

 private:
  static Opening& at(const Buffer& all, int r) { return reinterpret_cast<Opening*>(all.get())[r]; }

  const Turn& turn_;
  Buffer mine_;
  Buffer theirs_;
};

// Agrees, then swaps: sent(r) and kept(r) give the bytes for and from rank r. Both ranks of a pair
// know how many bytes they are.
template <class Sent, class Kept>
void agree_and_swap(const Turn& turn, const Sent& sent, const Kept& kept) {
  const Group group = everyone(turn);
  if (turn.size() > kFewRanks) {
    agree(turn);
    return swap_with_all(group, sent, kept);
  }
  Openings openings(turn);
  const auto along = [](const auto& bytes) { return std::ssize(bytes) <= Opening::kRoom; };
  for (int r = 0; r < turn.size(); ++r) {
    if (r == turn.rank() || !along(sent(r)) || sent(r).empty()) continue;
    std::memcpy(openings.sent(r), sent(r).data(), sent(r).size());
  }
  openings.exchange();
  for (int r = 0; r < turn.size(); ++r) {
    if (r == turn.rank() || !along(kept(r)) || kept(r).empty()) continue;
    std::memcpy(kept(r).data(), openings.received(r), kept(r).size());
  }
  const auto rest = [&](const auto& bytes) { return along(bytes) ? bytes.first(0) : bytes; };
  swap_with_all(
      group, [&](int r) { return rest(sent(r)); }, [&](int r) { return rest(kept(r)); });
}

}  // namespace renga::by_messages
