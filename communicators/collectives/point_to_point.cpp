#include "collectives/point_to_point.h"

#include <cstring>

#include "collectives/buffers.h"
#include "collectives/call_comparison.h"
#include "collectives/hierarchical.h"
#include "collectives/partition.h"
#include "collectives/two_level_comparison.h"
#include "collectives/unequal_nodes.h"

namespace renga::point_to_point {

namespace {

using all_reduce::NetworkModel;

// A rank's part of a chunk: long enough to hide the latency, short enough to stay in the cache.
constexpr std::int64_t kBytesPerRank = std::int64_t{1} << 20;

std::span<std::byte> bytes_of(const Array& x) {
  return x.defined() ? byte_span(x.data(), x.size() * x.itemsize()) : std::span<std::byte>();
}

// Along a binomial tree, overwrites `x`, which is contiguous, by that of the root.
void broadcast_along_tree(const CollectiveContext& context, const Array& x, int root) {
  const int size = context.size();
  const RankGroup group = all_ranks(context);
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

// sent[r] goes to rank r, received[r] comes from it: move(sent bytes of r, received bytes of r)
// moves them between ranks.
template <class Move>
void exchange(const CollectiveContext& context, const std::vector<Array>& sent,
              const std::vector<Array>& received, const Move& move) {
  const std::vector<Array> buffers = receive_buffers(received, is_contiguous);
  const KeptArrays sources = keep(context, send_buffers(sent, is_contiguous));
  const KeptArrays destinations = keep(context, buffers);
  const auto bytes_at = [](const KeptArrays& arrays, int r) {
    return bytes_of((*arrays)[static_cast<std::size_t>(r)]);
  };
  const auto own_x = bytes_at(sources, context.rank());
  const auto own_y = bytes_at(destinations, context.rank());
  move([&](int r) { return bytes_at(sources, r); },
       [&](int r) { return bytes_at(destinations, r); });
  if (!own_y.empty() && own_y.data() != own_x.data()) {
    std::memmove(own_y.data(), own_x.data(), own_y.size());
  }
  copy_received(buffers, received);
}

class Messages : public HostCollectives {
 public:
  void all_reduce(const CollectiveContext& context, const Arguments& arguments) override {
    const Dtype dtype = arguments.communication_dtype();
    const FlatBucket x(arguments.xs, dtype), y(arguments.ys, dtype);
    if (!arguments.algorithm && fits_first_message(context, x.bytes())) {
      return all_reduce_small(context, x, y, dtype, arguments.reduction);
    }
    compare(context);
    if (arguments.algorithm) {
      return point_to_point::all_reduce(context, {}, arguments.algorithm, x, y, dtype,
                                        arguments.reduction);
    }
    if (!network_) network_ = all_reduce::measure_network(context);
    reduce_long(context, *network_, x, y, dtype, arguments.reduction);
  }

  void reduce_scatter(const CollectiveContext& context, const Arguments& arguments) override {
    const Dtype dtype = arguments.dtype();
    const FlatBucket x(arguments.xs), y(arguments.ys);
    if (y.bytes() == 0) return compare(context);
    const int size = context.size();
    const std::int64_t chunk = std::min(y.bytes(), kBytesPerRank);
    const Buffer own = make_buffer(context, size * chunk);
    const Buffer others = make_buffer(context, size * chunk);
    for_each_chunk(y.bytes(), chunk, [&](std::int64_t begin, std::int64_t length) {
      for (int r = 0; r < size; ++r) x.read(r * y.bytes() + begin, length, own.get() + r * length);
      const auto sent = [&](int to) { return byte_span(own.get() + to * length, length); };
      const auto received = [&](int from) {
        return byte_span(others.get() + from * length, length);
      };
      if (begin == 0) {
        compare_and_exchange(context, sent, received);
      } else {
        send_receive_all(all_ranks(context), sent, received);
      }
      std::vector<const std::byte*> xs;
      for (int r = 0; r < size; ++r) {
        xs.push_back((r == context.rank() ? own : others).get() + r * length);
      }
      reduce(arguments.reduction, dtype, xs, own.get(), length / size_of(dtype));
      y.write(begin, length, own.get());
    });
  }

  void all_gather(const CollectiveContext& context, const Arguments& arguments) override {
    const Array input = send_buffers(arguments.xs, is_contiguous)[0];
    exchange(context, std::vector<Array>(arguments.ys.size(), input), arguments.ys,
             [&](const BytesOf& sent, const BytesOf& received) {
               compare_and_gather(
                   context, [&](int r) { return r == context.rank() ? sent(r) : received(r); });
             });
  }

  void all_to_all(const CollectiveContext& context, const Arguments& arguments) override {
    exchange(context, arguments.xs, arguments.ys,
             [&](const BytesOf& sent, const BytesOf& received) {
               compare_and_exchange(context, sent, received);
             });
  }

  void broadcast(const CollectiveContext& context, const Arguments& arguments) override {
    const int root = static_cast<int>(*arguments.root);
    const std::vector<Array> buffers = context.rank() == root
                                           ? send_buffers(arguments.xs, is_contiguous)
                                           : receive_buffers(arguments.ys, is_contiguous);
    const KeptArrays kept = keep(context, buffers);
    const Array& x = buffers[0];
    if (fits_first_message(context, std::ssize(bytes_of(x)))) {
      compare_and_gather(context,
                         [&](int r) { return r == root ? bytes_of(x) : std::span<std::byte>(); });
    } else {
      compare(context);
      broadcast_along_tree(context, x, root);
    }
    copy_received(buffers, arguments.ys);
  }

  void barrier(const CollectiveContext& context) override { compare(context); }

 protected:
  // Each throws CallMismatch on all ranks unless their calls match.
  virtual void compare(const CollectiveContext& context) { compare_calls(context); }
  // All ranks get block_of(r) of each rank r, whose size they know.
  virtual void compare_and_gather(const CollectiveContext& context, const BytesOf& block_of) {
    compare_and_send_receive_all(
        context, [&](int) { return block_of(context.rank()); }, block_of);
  }
  // sent(r) goes to rank r, received(r) comes from it.
  virtual void compare_and_exchange(const CollectiveContext& context, const BytesOf& sent,
                                    const BytesOf& received) {
    compare_and_send_receive_all(context, sent, received);
  }

 private:
  // Reduces vectors that fit into the first messages, in which the calls are compared.
  void all_reduce_small(const CollectiveContext& context, const FlatBucket& x, const FlatBucket& y,
                        Dtype dtype, ReduceOp reduction) {
    const std::int64_t bytes = x.bytes();
    const Buffer memory = make_buffer(context, context.size() * bytes + bytes);
    const auto operand = [&](int r) { return byte_span(memory.get() + r * bytes, bytes); };
    x.read(0, bytes, operand(context.rank()).data());
    compare_and_gather(context, operand);
    std::vector<const std::byte*> xs;
    for (int r = 0; r < context.size(); ++r) xs.push_back(operand(r).data());
    std::byte* const result = memory.get() + context.size() * bytes;
    reduce(reduction, dtype, xs, result, bytes / size_of(dtype));
    y.write(0, bytes, result);
  }

  // Reduces vectors that do not fit into the first messages, after the calls have been compared.
  virtual void reduce_long(const CollectiveContext& context, const NetworkModel& network,
                           const FlatBucket& x, const FlatBucket& y, Dtype dtype,
                           ReduceOp reduction) {
    point_to_point::all_reduce(context, network, {}, x, y, dtype, reduction);
  }

  std::optional<NetworkModel> network_;  // measured by the first reduction that needs it
};

class TwoLevels final : public Messages {
 public:
  explicit TwoLevels(SharedSegment& segment) : segment_(segment) {}

  void reduce_scatter(const CollectiveContext& context, const Arguments& arguments) override {
    const FlatBucket x(arguments.xs), y(arguments.ys);
    if (!is_on_two_levels(context, y.bytes())) return Messages::reduce_scatter(context, arguments);
    compare(context);
    hierarchical::reduce_scatter(context, segment_, x, y, arguments.dtype(), arguments.reduction);
  }

  void all_gather(const CollectiveContext& context, const Arguments& arguments) override {
    std::vector<FlatBucket> ys;
    std::int64_t longest = 0;
    for (const Array& y : arguments.ys) {
      longest = std::max(longest, ys.emplace_back(std::span(&y, 1)).bytes());
    }
    if (!is_on_two_levels(context, longest)) return Messages::all_gather(context, arguments);
    compare(context);
    hierarchical::all_gather(context, segment_, FlatBucket(arguments.xs), ys);
  }

 private:
  void compare(const CollectiveContext& context) override {
    if (!is_uniform(context)) return Messages::compare(context);
    compare_on_two_levels(context, segment_);
  }
  void compare_and_gather(const CollectiveContext& context, const BytesOf& block_of) override {
    if (!is_uniform(context)) return Messages::compare_and_gather(context, block_of);
    compare_and_gather_on_two_levels(context, segment_, block_of);
  }
  void compare_and_exchange(const CollectiveContext& context, const BytesOf& sent,
                            const BytesOf& received) override {
    if (!is_uniform(context)) return Messages::compare_and_exchange(context, sent, received);
    compare_on_two_levels(context, segment_);
    send_receive_all(all_ranks(context), sent, received);
  }

  void reduce_long(const CollectiveContext& context, const NetworkModel& network,
                   const FlatBucket& x, const FlatBucket& y, Dtype dtype,
                   ReduceOp reduction) override {
    if (is_uniform(context)) {
      hierarchical::all_reduce(context, segment_, network, x, y, dtype, reduction);
    } else if (unequal_nodes::pays(context, network, x.bytes())) {
      unequal_nodes::all_reduce(context, segment_, x, y, dtype, reduction);
    } else {
      point_to_point::all_reduce(context, network, {}, x, y, dtype, reduction);
    }
  }

  // Whether the ranks of a node are a subtree of a reduction, and more than one.
  static bool is_uniform(const CollectiveContext& context) {
    const Topology& topology = context.transport.topology();
    return topology.uniform_nodes && topology.intra_size > 1;
  }

  // Whether a collective whose blocks are so long goes by two levels; every rank is told the same.
  bool is_on_two_levels(const CollectiveContext& context, std::int64_t block_bytes) const {
    return is_uniform(context) && context.size() <= hierarchical::kMostRanks &&
           !fits_first_message(context, block_bytes);
  }

  SharedSegment& segment_;
};

}  // namespace

void all_reduce(const CollectiveContext& context, const NetworkModel& network,
                std::optional<all_reduce::Algorithm> algorithm, const FlatBucket& x,
                const FlatBucket& y, Dtype dtype, ReduceOp reduction) {
  const std::int64_t chunk = std::min(x.bytes(), context.size() * kBytesPerRank);
  const Buffer vector = make_buffer(context, chunk);
  for_each_chunk(x.bytes(), chunk, [&](std::int64_t begin, std::int64_t length) {
    x.read(begin, length, vector.get());
    run(all_ranks(context), {vector.get(), length / size_of(dtype), dtype, reduction}, network,
        algorithm);
    y.write(begin, length, vector.get());
  });
}

std::unique_ptr<HostCollectives> messages() { return std::make_unique<Messages>(); }

std::unique_ptr<HostCollectives> two_levels(SharedSegment& segment) {
  return std::make_unique<TwoLevels>(segment);
}

}  // namespace renga::point_to_point
