// Some of a communicator's ranks, in the order of their operands, and messages among them.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "context/collective_context.h"

namespace renga {

// Destinations and sources below are positions in `ranks`.
struct RankGroup {
  const CollectiveContext& context;
  std::vector<int> ranks;
  int position;  // of this rank

  int size() const { return static_cast<int>(ranks.size()); }
};

RankGroup all_ranks(const CollectiveContext& context);
// The ranks first, first + step, …, `count` of them; this rank is one.
RankGroup strided_ranks(const CollectiveContext& context, int first, int step, int count);

// Start a message; empty ones are skipped. Post sends before receives: with the rendezvous protocol
// of long messages, a receive posted first lets the peer's data onto the link ahead of this rank's
// request to send, and the two directions no longer overlap.
void post_send(Transfers& transfers, const RankGroup& group, std::span<const std::byte> data,
               int to);
void post_receive(Transfers& transfers, const RankGroup& group, std::span<std::byte> data,
                  int from);

void send(const RankGroup& group, std::span<const std::byte> data, int to);
void receive(const RankGroup& group, std::span<std::byte> data, int from);
// Both at once, as MPI_Sendrecv.
void send_receive(const RankGroup& group, std::span<const std::byte> sent, int to,
                  std::span<std::byte> received, int from);

// Start a message to and from every other rank: sent(r) and received(r) return the bytes for each.
template <class Sent, class Received>
void post_send_receive_all(Transfers& transfers, const RankGroup& group, const Sent& sent,
                           const Received& received) {
  const int size = group.size();
  // Each rank starts with its successor, so that not all of them send to one rank first.
  for (int step = 1; step < size; ++step) {
    const int to = (group.position + step) % size;
    post_send(transfers, group, sent(to), to);
  }
  for (int step = 1; step < size; ++step) {
    const int from = (group.position - step + size) % size;
    post_receive(transfers, group, received(from), from);
  }
}
// This waits for the messages, too.
template <class Sent, class Received>
void send_receive_all(const RankGroup& group, const Sent& sent, const Received& received) {
  Transfers transfers;
  post_send_receive_all(transfers, group, sent, received);
  wait_all_or_cancel(transfers, group.context);
}

// Frees memory, except where an exception ends a collective whose messages may still use it.
struct FreeUnlessInUse {
  const CollectiveContext* context = nullptr;
  int exceptions = std::uncaught_exceptions();
  bool is_in_use() const {
    return context->memory_in_use && std::uncaught_exceptions() > exceptions;
  }
  void operator()(std::byte* memory) const {
    if (!is_in_use()) delete[] memory;
  }
  void operator()(const std::vector<Array>* arrays) const {
    if (!is_in_use()) delete arrays;
  }
};

// Temporary memory for the messages of a collective, not initialized.
using Buffer = std::unique_ptr<std::byte[], FreeUnlessInUse>;
inline Buffer make_buffer(const CollectiveContext& context, std::int64_t bytes) {
  return Buffer(new std::byte[static_cast<std::size_t>(bytes)], {&context});
}
// References to arrays whose elements a collective sends or receives.
using KeptArrays = std::unique_ptr<const std::vector<Array>, FreeUnlessInUse>;
inline KeptArrays keep(const CollectiveContext& context, const std::vector<Array>& arrays) {
  return KeptArrays(new std::vector<Array>(arrays), {&context});
}
inline std::span<std::byte> byte_span(std::byte* data, std::int64_t length) {
  return {data, static_cast<std::size_t>(length)};
}

}  // namespace renga
