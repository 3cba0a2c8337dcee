#include "collectives/point_to_point.h"

#include <cstring>

#include "collectives/call_comparison.h"
#include "collectives/partition.h"

namespace renga::point_to_point {

namespace {

// A rank's part of a chunk: long enough to hide the latency, short enough to stay in the cache.
constexpr std::int64_t kBytesPerRank = std::int64_t{1} << 20;

std::span<std::byte> bytes_of(const Array& x) {
  return x.defined() ? byte_span(x.data(), x.size() * x.itemsize()) : std::span<std::byte>();
}

}  // namespace

void all_to_allv(const CollectiveContext& context, const std::vector<Array>& sent,
                 const std::vector<Array>& received) {
  const auto own_x = bytes_of(sent[context.rank()]), own_y = bytes_of(received[context.rank()]);
  const TransferArrays sources(sent), destinations(received);
  compare_and_send_receive_all(
      context, [&](int r) { return bytes_of(sent[r]); },
      [&](int r) { return bytes_of(received[r]); });
  if (!own_y.empty() && own_y.data() != own_x.data()) {
    std::memmove(own_y.data(), own_x.data(), own_y.size());
  }
}

void broadcast(const CollectiveContext& context, const Array& x, int root) {
  const int size = context.size();
  const RankGroup group = all_ranks(context);
  const TransferArrays arrays({x});
  if (fits_first_message(context, std::ssize(bytes_of(x)))) {
    const auto sent_by = [&](int rank) {
      return rank == root ? bytes_of(x) : std::span<std::byte>();
    };
    return compare_and_send_receive_all(
        context, [&](int) { return sent_by(context.rank()); }, sent_by);
  }
  compare_calls(context);
  const int node = (context.rank() - root + size) % size;  // of a tree whose root is 0
  const auto rank_of = [&](int n) { return (n + root) % size; };
  int bit = 1;
  for (; bit < size; bit <<= 1) {
    if ((node & bit) == 0) continue;
    receive(group, bytes_of(x), rank_of(node - bit));
    break;
  }
  Transfers transfers;
  for (bit >>= 1; bit > 0; bit >>= 1) {
    if (node + bit < size) post_send(transfers, group, bytes_of(x), rank_of(node + bit));
  }
  wait_all_or_cancel(transfers, context);
}

void all_reduce_small(const CollectiveContext& context, const FlatBucket& x, const FlatBucket& y,
                      Dtype dtype, Reduction reduction) {
  const std::int64_t bytes = x.bytes();
  const Buffer memory = make_buffer(context.size() * bytes + bytes);
  const auto operand = [&](int r) { return byte_span(memory.get() + r * bytes, bytes); };
  x.read(0, bytes, operand(context.rank()).data());
  compare_and_send_receive_all(
      context, [&](int) { return operand(context.rank()); }, operand);
  std::vector<const std::byte*> xs;
  for (int r = 0; r < context.size(); ++r) xs.push_back(operand(r).data());
  std::byte* const result = memory.get() + context.size() * bytes;
  reduce(reduction, dtype, xs, result, bytes / size_of(dtype));
  y.write(0, bytes, result);
}

void all_reduce(const CollectiveContext& context, const all_reduce::NetworkModel& network,
                std::optional<all_reduce::Algorithm> algorithm, const FlatBucket& x,
                const FlatBucket& y, Dtype dtype, Reduction reduction) {
  const std::int64_t chunk = std::min(x.bytes(), context.size() * kBytesPerRank);
  const Buffer vector = make_buffer(chunk);
  const RankGroup group = all_ranks(context);
  for_each_chunk(x.bytes(), chunk, [&](std::int64_t begin, std::int64_t length) {
    x.read(begin, length, vector.get());
    run(group, {vector.get(), length / size_of(dtype), dtype, reduction}, network, algorithm);
    y.write(begin, length, vector.get());
  });
}

void reduce_scatter(const CollectiveContext& context, const FlatBucket& x, const FlatBucket& y,
                    Dtype dtype, Reduction reduction) {
  if (y.bytes() == 0) return compare_calls(context);
  const int size = context.size();
  const std::int64_t chunk = std::min(y.bytes(), kBytesPerRank);
  const Buffer own = make_buffer(size * chunk), others = make_buffer(size * chunk);
  for_each_chunk(y.bytes(), chunk, [&](std::int64_t begin, std::int64_t length) {
    for (int r = 0; r < size; ++r) x.read(r * y.bytes() + begin, length, own.get() + r * length);
    const auto sent = [&](int to) { return byte_span(own.get() + to * length, length); };
    const auto received = [&](int from) { return byte_span(others.get() + from * length, length); };
    if (begin == 0) {
      compare_and_send_receive_all(context, sent, received);
    } else {
      send_receive_all(all_ranks(context), sent, received);
    }
    std::vector<const std::byte*> xs;
    for (int r = 0; r < size; ++r) {
      xs.push_back((r == context.rank() ? own : others).get() + r * length);
    }
    reduce(reduction, dtype, xs, own.get(), length / size_of(dtype));
    y.write(begin, length, own.get());
  });
}

}  // namespace renga::point_to_point
