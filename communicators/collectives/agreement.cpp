#include "collectives/agreement.h"

#include <algorithm>

#include "collectives/board.h"

namespace renga::by_messages {

namespace {

// Tells who asks for what, once the ranks know that they disagree.
[[noreturn]] void tell_calls(const Turn& turn) {
  const auto size = static_cast<std::size_t>(turn.size());
  const Buffer all = buffer(turn.size() * static_cast<std::int64_t>(sizeof(Call)));
  const auto call_of = [&](int r) {
    return bytes_at(all.get() + r * static_cast<std::int64_t>(sizeof(Call)), sizeof(Call));
  };
  std::memcpy(call_of(turn.rank()).data(), &turn.call, sizeof(Call));
  swap_with_all(
      everyone(turn), [&](int) { return call_of(turn.rank()); }, call_of);
  std::vector<Call> calls(size);
  std::memcpy(calls.data(), all.get(), size * sizeof(Call));
  require_agreement(calls);
  fail<Disagreement>(turn.call.op, ": expected the same call on every rank");
}

// In step k each rank hears from the one 2^k before it what the least and the greatest digest are
// that have come there.
bool all_have(const Turn& turn, std::uint64_t digest) {
  const Group group = everyone(turn);
  const Buffer memory = buffer(4 * static_cast<std::int64_t>(sizeof(digest)));
  auto* const range = reinterpret_cast<std::uint64_t*>(memory.get());
  std::fill_n(range, 4, digest);
  for (int step = 1; step < turn.size(); step *= 2) {
    Transfers transfers;
    const int to = (turn.rank() + step) % turn.size();
    const int from = (turn.rank() - step + turn.size()) % turn.size();
    post_send(transfers, group, bytes_at(memory.get(), 16), to);
    post_receive(transfers, group, bytes_at(memory.get() + 16, 16), from);
    finish(transfers, turn);
    range[0] = std::min(range[0], range[2]);
    range[1] = std::max(range[1], range[3]);
  }
  return range[0] == range[1];
}

}  // namespace

Openings::Openings(const Turn& turn)
    : turn_(turn),
      mine_(buffer(turn.size() * static_cast<std::int64_t>(sizeof(Opening)))),
      theirs_(buffer(turn.size() * static_cast<std::int64_t>(sizeof(Opening)))) {}

void Openings::exchange() {
  const std::uint64_t digest = turn_.call.digest();
  const auto bytes_of = [](const Buffer& all, int r) {
    return bytes_at(reinterpret_cast<std::byte*>(&at(all, r)), sizeof(Opening));
  };
  for (int r = 0; r < turn_.size(); ++r) at(mine_, r).digest = digest;
  swap_with_all(
      everyone(turn_), [&](int r) { return bytes_of(mine_, r); },
      [&](int r) { return bytes_of(theirs_, r); });
  for (int r = 0; r < turn_.size(); ++r) {
    if (r != turn_.rank() && at(theirs_, r).digest != digest) tell_calls(turn_);
  }
}

void agree(const Turn& turn) {
  if (turn.size() <= kFewRanks) return Openings(turn).exchange();
  if (!all_have(turn, turn.call.digest())) tell_calls(turn);
}

}  // namespace renga::by_messages
