#include "collectives/two_level_comparison.h"

#include <cstring>

namespace renga::point_to_point {

namespace {

constexpr std::int64_t kPayloadBytes = FirstMessage::kPayloadBytes;

// The first message between two nodes in every collective, whatever the ranks call.
struct NodeMessage {
  DigestRange digests;  // of the ranks of a node
  std::byte payload[kPayloadBytes];
};

std::span<std::byte> bytes_of(NodeMessage& message) {
  return byte_span(reinterpret_cast<std::byte*>(&message), sizeof(message));
}

DigestRange digests_of_node(const CollectiveContext& context, SharedSegment& segment) {
  const int buffer = segment.next_buffer();
  const std::uint64_t own = context.call.digest();
  std::memcpy(segment.buffer(segment.local_rank(), buffer), &own, sizeof(own));
  segment.barrier(context);
  DigestRange range{own, own};
  for (int r = 0; r < segment.ranks(); ++r) {
    std::uint64_t digest = 0;
    std::memcpy(&digest, segment.buffer(r, buffer), sizeof(digest));
    range.add({digest, digest});
  }
  return range;
}

}  // namespace

void compare_on_two_levels(const CollectiveContext& context, SharedSegment& segment) {
  compare_and_gather_on_two_levels(context, segment, [](int) { return std::span<std::byte>(); });
}

void compare_and_gather_on_two_levels(const CollectiveContext& context, SharedSegment& segment,
                                      const BytesOf& block_of) {
  const Topology& topology = context.transport.topology();
  const RankGroup nodes =
      strided_ranks(context, topology.intra_rank, topology.intra_size, topology.inter_size);
  const Buffer memory =
      make_buffer(context, (nodes.size() + 1) * static_cast<std::int64_t>(sizeof(NodeMessage)));
  auto* const received = reinterpret_cast<NodeMessage*>(memory.get());  // by node
  NodeMessage& sent = received[nodes.size()];
  sent = {};
  sent.digests = digests_of_node(context, segment);
  const auto fits = [&](std::span<const std::byte> block) {
    return std::ssize(block) <= kPayloadBytes &&
           nodes.size() * kPayloadBytes <= SharedSegment::kBufferBytes;
  };
  const auto own = block_of(context.rank());
  if (fits(own) && !own.empty()) std::memcpy(sent.payload, own.data(), own.size());
  send_receive_all(
      nodes, [&](int) { return bytes_of(sent); },
      [&](int from) { return bytes_of(received[from]); });
  received[nodes.position] = sent;
  DigestRange all = sent.digests;
  for (int n = 0; n < nodes.size(); ++n) all.add(received[n].digests);
  if (all.least != all.greatest) throw_mismatch(context);

  // The ranks of this node give each other what each has got.
  std::vector<int> travelled;
  for (int r = 0; r < context.size(); ++r) {
    if (fits(block_of(r)) && !block_of(r).empty()) travelled.push_back(r);
  }
  if (!travelled.empty()) {
    const int buffer = segment.next_buffer();
    for (int n = 0; n < nodes.size(); ++n) {
      std::memcpy(segment.buffer(segment.local_rank(), buffer) + n * kPayloadBytes,
                  received[n].payload, kPayloadBytes);
    }
    segment.barrier(context);
    for (const int r : travelled) {
      if (r == context.rank()) continue;
      const std::byte* const payloads = segment.buffer(r % segment.ranks(), buffer);
      const auto block = block_of(r);
      std::memcpy(block.data(), payloads + r / segment.ranks() * kPayloadBytes, block.size());
    }
  }
  const auto unless_fits = [&](std::span<std::byte> block) {
    return fits(block) ? block.first(0) : block;
  };
  send_receive_all(
      all_ranks(context), [&](int) { return unless_fits(own); },
      [&](int r) { return unless_fits(block_of(r)); });
}

}  // namespace renga::point_to_point
