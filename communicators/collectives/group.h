// Some of a communicator's ranks, in the order in which operands are taken, and messages among
// them. A place is a position in the group.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "turn.h"

namespace renga {

struct Group {
  const Turn& turn;
  std::vector<int> ranks;
  int place;

  int size() const { return static_cast<int>(ranks.size()); }
};

// All ranks.
Group everyone(const Turn& turn);
// The `count` ranks that lie `step` apart from `first` on; this rank is among them.
Group every(const Turn& turn, int first, int step, int count);

// What a message that waits for nobody else needs: nothing is posted for empty ones. Sends go
// first: a long message is announced, and goes when the other rank has answered. An answer that
// comes before this rank's own announcement lets the message into the cable ahead of it, and what
// comes back would wait until all of that is through.
void post_send(Transfers& transfers, const Group& group, std::span<const std::byte> data, int to);
void post_receive(Transfers& transfers, const Group& group, std::span<std::byte> data, int from);

void send(const Group& group, std::span<const std::byte> data, int to);
void receive(const Group& group, std::span<std::byte> data, int from);
// Both at once.
void swap(const Group& group, std::span<const std::byte> sent, int to, std::span<std::byte> kept,
          int from);

// sent(r) and kept(r) give where the bytes for and from place r are.
template <class Sent, class Kept>
void swap_with_all(const Group& group, const Sent& sent, const Kept& kept) {
  Transfers transfers;
  const int size = group.size();
  // Starting behind oneself spreads the load: no rank is everybody's first partner.
  for (int step = 1; step < size; ++step) {
    const int to = (group.place + step) % size;
    post_send(transfers, group, sent(to), to);
  }
  for (int step = 1; step < size; ++step) {
    const int from = (group.place - step + size) % size;
    post_receive(transfers, group, kept(from), from);
  }
  finish(transfers, group.turn);
}

// Frees memory, but not where an error ends a collective whose messages may still use it.
struct FreeUnlessInUse {
  int errors = std::uncaught_exceptions();
  void operator()(std::byte* memory) const {
    if (memory_in_use() && std::uncaught_exceptions() > errors) return;
    delete[] memory;
  }
};

using Buffer = std::unique_ptr<std::byte[], FreeUnlessInUse>;
inline Buffer buffer(std::int64_t bytes) {
  return Buffer(new std::byte[static_cast<std::size_t>(bytes)]);
}
inline std::span<std::byte> bytes_at(std::byte* data, std::int64_t length) {
  return {data, static_cast<std::size_t>(length)};
}

}  // namespace renga
