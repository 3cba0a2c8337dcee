#include "collectives/group.h"

namespace renga {

Group everyone(const Turn& turn) { return every(turn, 0, 1, turn.size()); }

Group every(const Turn& turn, int first, int step, int count) {
  std::vector<int> ranks;
  for (int i = 0; i < count; ++i) ranks.push_back(first + i * step);
  return {turn, std::move(ranks), (turn.rank() - first) / step};
}

void post_send(Transfers& transfers, const Group& group, std::span<const std::byte> data, int to) {
  if (data.empty()) return;
  transfers.push_back(group.turn.transport.send(
      data.data(), std::ssize(data), group.ranks[static_cast<std::size_t>(to)], kCollectiveTag));
}

void post_receive(Transfers& transfers, const Group& group, std::span<std::byte> data, int from) {
  if (data.empty()) return;
  transfers.push_back(group.turn.transport.receive(
      data.data(), std::ssize(data), group.ranks[static_cast<std::size_t>(from)], kCollectiveTag));
}

void send(const Group& group, std::span<const std::byte> data, int to) {
  swap(group, data, to, {}, to);
}

void receive(const Group& group, std::span<std::byte> data, int from) {
  swap(group, {}, from, data, from);
}

void swap(const Group& group, std::span<const std::byte> sent, int to, std::span<std::byte> kept,
          int from) {
  Transfers transfers;
  post_send(transfers, group, sent, to);
  post_receive(transfers, group, kept, from);
  finish(transfers, group.turn);
}

}  // namespace renga
