// Comparison of the ranks' calls by messages, before any data is moved. Short data travels in the
// same messages, so that the comparison costs it no time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "collectives/rank_group.h"

namespace renga::point_to_point {

// The first message of every collective between each two ranks, whatever they call.
struct FirstMessage {
  static constexpr std::int64_t kPayloadBytes = 504;
  std::uint64_t digest;
  std::byte payload[kPayloadBytes];
};

// Up to so many ranks exchange first messages with each other; more compare digests in log2(ranks)
// steps, and no data travels along.
inline constexpr int kFewRanks = 16;

inline bool fits_first_message(const CollectiveContext& context, std::int64_t bytes) {
  return context.size() <= kFewRanks && bytes <= FirstMessage::kPayloadBytes;
}

// The least and the greatest digest of some ranks' calls.
struct DigestRange {
  std::uint64_t least;
  std::uint64_t greatest;

  void add(const DigestRange& other) {
    least = std::min(least, other.least);
    greatest = std::max(greatest, other.greatest);
  }
};

// Throws CallMismatch on all ranks unless their calls match.
void compare_calls(const CollectiveContext& context);
// Every rank calls it once the ranks know that their calls differ, and it says which do.
[[noreturn]] void throw_mismatch(const CollectiveContext& context);

// The first messages to and from each rank; those of this rank to itself are not used.
class FirstMessages {
 public:
  explicit FirstMessages(const CollectiveContext& context);
  std::byte* sent_payload(int to) { return message(sent_, to).payload; }
  const std::byte* received_payload(int from) { return message(received_, from).payload; }
  // Throws as compare_calls() does.
  void send_receive();

 private:
  static FirstMessage& message(const Buffer& messages, int r) {
    return reinterpret_cast<FirstMessage*>(messages.get())[r];
  }

  const CollectiveContext& context_;
  Buffer sent_;
  Buffer received_;
};

// compare_calls(), then send_receive_all(). Both ranks of a pair know how many bytes they exchange.
template <class Sent, class Received>
void compare_and_send_receive_all(const CollectiveContext& context, const Sent& sent,
                                  const Received& received) {
  const RankGroup group = all_ranks(context);
  if (context.size() > kFewRanks) {
    compare_calls(context);
    return send_receive_all(group, sent, received);
  }
  FirstMessages messages(context);
  const auto fits = [](const auto& bytes) {
    return std::ssize(bytes) <= FirstMessage::kPayloadBytes;
  };
  for (int r = 0; r < context.size(); ++r) {
    if (r == context.rank() || !fits(sent(r)) || sent(r).empty()) continue;
    std::memcpy(messages.sent_payload(r), sent(r).data(), sent(r).size());
  }
  messages.send_receive();
  for (int r = 0; r < context.size(); ++r) {
    if (r == context.rank() || !fits(received(r)) || received(r).empty()) continue;
    std::memcpy(received(r).data(), messages.received_payload(r), received(r).size());
  }
  const auto unless_fits = [&](const auto& bytes) { return fits(bytes) ? bytes.first(0) : bytes; };
  send_receive_all(
      group, [&](int r) { return unless_fits(sent(r)); },
      [&](int r) { return unless_fits(received(r)); });
}

}  // namespace renga::point_to_point
