#include "collectives/rank_group.h"

namespace renga {

RankGroup all_ranks(const CollectiveContext& context) {
  return strided_ranks(context, 0, 1, context.size());
}

RankGroup strided_ranks(const CollectiveContext& context, int first, int step, int count) {
  std::vector<int> ranks;
  for (int i = 0; i < count; ++i) ranks.push_back(first + i * step);
  return {context, std::move(ranks), (context.rank() - first) / step};
}

void post_send(Transfers& transfers, const RankGroup& group, std::span<const std::byte> data,
               int to) {
  if (data.empty()) return;
  transfers.push_back(group.context.transport.send(
      data.data(), std::ssize(data), group.ranks[static_cast<std::size_t>(to)], kCollectiveTag));
}

void post_receive(Transfers& transfers, const RankGroup& group, std::span<std::byte> data,
                  int from) {
  if (data.empty()) return;
  transfers.push_back(group.context.transport.receive(
      data.data(), std::ssize(data), group.ranks[static_cast<std::size_t>(from)], kCollectiveTag));
}

void send(const RankGroup& group, std::span<const std::byte> data, int to) {
  send_receive(group, data, to, {}, to);
}

void receive(const RankGroup& group, std::span<std::byte> data, int from) {
  send_receive(group, {}, from, data, from);
}

void send_receive(const RankGroup& group, std::span<const std::byte> sent, int to,
                  std::span<std::byte> received, int from) {
  Transfers transfers;
  post_send(transfers, group, sent, to);
  post_receive(transfers, group, received, from);
  wait_all_or_cancel(transfers, group.context);
}

}  // namespace renga
