#include "collectives/unequal_nodes.h"

#include <cstring>

#include "collectives/node_layout.h"
#include "collectives/partition.h"
#include "collectives/rank_group.h"

namespace renga::unequal_nodes {

namespace {

// As much of a vector goes between nodes at once, which hides the latency.
constexpr std::int64_t kMessageBytes = 16 * SharedSegment::kBufferBytes;

// A Partition is what a rank has of a partition that it handles on its node.
struct Partition {
  int owner;
  std::int64_t n;   // elements
  Buffer partials;  // of this node, one subtree after the other
  Buffer result;
  std::int64_t done = 0;  // elements
};

// Reduces a piece of a vector of which each node sends its partial results at once.
class Message {
 public:
  Message(const CollectiveContext& context, SharedSegment& segment, const NodeLayout& layout,
          Dtype dtype, ReduceOp reduction, std::int64_t bytes)
      : group_(all_ranks(context)),
        segment_(segment),
        layout_(layout),
        dtype_(dtype),
        reduction_(reduction),
        bytes_(bytes) {
    for (int owner = 0; owner < group_.size(); ++owner) {
      if (layout.handler(node(), owner) != group_.position) continue;
      Partition& part = handled_.emplace_back(Partition{owner, size_of_partition(owner), {}, {}});
      part.partials = make_buffer(group_.context, layout.subtrees_of(node()) * partial_bytes(part));
      part.result = make_buffer(group_.context, result_bytes(part));
    }
  }

  // The piece begins at byte `start`.
  void run(const FlatBucket& x, const FlatBucket& y, std::int64_t start) {
    reduce_within_node(x, start);
    const std::vector<Buffer> others = exchange_partials();
    finish(others);
    exchange_results();
    share_within_node(y, start);
  }

 private:
  int node() const { return group_.context.transport.topology().inter_rank; }
  Partition& own() { return *std::ranges::find(handled_, group_.position, &Partition::owner); }

  // The elements of a chunk of `length` bytes that `owner` reduces.
  Interval elements(std::int64_t length, int owner) const {
    const Interval bytes = partition(length, owner, group_.size());
    return {bytes.begin / size_of(dtype_), bytes.end / size_of(dtype_)};
  }
  std::int64_t size_of_partition(int owner) const {
    std::int64_t n = 0;
    for_each_chunk(bytes_, SharedSegment::kBufferBytes, [&](std::int64_t, std::int64_t length) {
      n += elements(length, owner).length();
    });
    return n;
  }
  std::int64_t partial_bytes(const Partition& part) const {
    return part.n * size_of(partial_dtype(dtype_));
  }
  std::int64_t result_bytes(const Partition& part) const { return part.n * size_of(dtype_); }

  template <class Visit>
  void for_each_other_node(const Visit& visit) const {
    const int nodes = group_.context.transport.topology().inter_size;
    for (int step = 1; step < nodes; ++step) visit((node() + step) % nodes);
  }

  void reduce_within_node(const FlatBucket& x, std::int64_t start) {
    for_each_chunk(bytes_, SharedSegment::kBufferBytes,
                   [&](std::int64_t begin, std::int64_t length) {
                     const int buffer = segment_.next_buffer();
                     x.read(start + begin, length, segment_.buffer(segment_.local_rank(), buffer));
                     segment_.barrier(group_.context);
                     for (Partition& part : handled_) {
                       const Interval range = elements(length, part.owner);
                       reduce_range(part, buffer, range);
                       part.done += range.length();
                     }
                   });
  }

  // A range of a chunk, in the staging buffers, to one partial result for each subtree.
  void reduce_range(const Partition& part, int buffer, Interval range) {
    std::byte* partial = part.partials.get() + part.done * size_of(partial_dtype(dtype_));
    for (const NodeLayout::Subtree& subtree : layout_.subtrees()) {
      if (subtree.node != node()) continue;
      std::vector<const std::byte*> xs;
      for (int r = subtree.begin; r < subtree.end; ++r) {
        const std::byte* operand = segment_.buffer(layout_.local_rank(r), buffer);
        xs.push_back(operand + range.begin * size_of(dtype_));
      }
      reduce_to_partial(reduction_, dtype_, xs, partial, range.length());
      partial += partial_bytes(part);
    }
  }

  // This node's partial results go to the owners; returns those of other nodes, by node.
  std::vector<Buffer> exchange_partials() {
    Transfers transfers;
    for (const Partition& part : handled_) {
      if (layout_.node_of(part.owner) == node()) continue;
      const std::int64_t bytes = layout_.subtrees_of(node()) * partial_bytes(part);
      post_send(transfers, group_, byte_span(part.partials.get(), bytes), part.owner);
    }
    std::vector<Buffer> others(
        static_cast<std::size_t>(group_.context.transport.topology().inter_size));
    for_each_other_node([&](int other) {
      const std::int64_t bytes = layout_.subtrees_of(other) * partial_bytes(own());
      Buffer& buffer = others[static_cast<std::size_t>(other)] = make_buffer(group_.context, bytes);
      post_receive(transfers, group_, byte_span(buffer.get(), bytes),
                   layout_.handler(other, group_.position));
    });
    wait_all_or_cancel(transfers, group_.context);
    return others;
  }

  // Reduces this rank's partition.
  void finish(const std::vector<Buffer>& others) {
    std::vector<std::byte*> next;  // the next partial result of each node
    for (const Buffer& buffer : others) next.push_back(buffer.get());
    next[static_cast<std::size_t>(node())] = own().partials.get();
    std::vector<std::byte*> partials;  // by subtree
    for (const NodeLayout::Subtree& subtree : layout_.subtrees()) {
      std::byte*& partial = next[static_cast<std::size_t>(subtree.node)];
      partials.push_back(partial);
      partial += partial_bytes(own());
    }
    const std::byte* partial = layout_.combine(partials, [&](std::byte* left, std::byte* right) {
      combine_partial(reduction_, dtype_, left, right, left, own().n);
    });
    finish_partial(reduction_, dtype_, group_.size(), partial, own().result.get(), own().n);
  }

  void exchange_results() {
    Transfers transfers;
    const auto result_of = [&](const Partition& part) {
      return byte_span(part.result.get(), result_bytes(part));
    };
    for_each_other_node([&](int other) {
      post_send(transfers, group_, result_of(own()), layout_.handler(other, group_.position));
    });
    for (const Partition& part : handled_) {
      if (layout_.node_of(part.owner) == node()) continue;
      post_receive(transfers, group_, result_of(part), part.owner);
    }
    wait_all_or_cancel(transfers, group_.context);
  }

  void share_within_node(const FlatBucket& y, std::int64_t start) {
    const std::int64_t itemsize = size_of(dtype_);
    for (Partition& part : handled_) part.done = 0;
    for_each_chunk(
        bytes_, SharedSegment::kBufferBytes, [&](std::int64_t begin, std::int64_t length) {
          const int buffer = segment_.next_buffer();
          std::byte* staged = segment_.buffer(segment_.local_rank(), buffer);
          for (Partition& part : handled_) {
            const Interval range = elements(length, part.owner);
            std::memcpy(staged + range.begin * itemsize, part.result.get() + part.done * itemsize,
                        static_cast<std::size_t>(range.length() * itemsize));
            part.done += range.length();
          }
          segment_.barrier(group_.context);
          for (int owner = 0; owner < group_.size(); ++owner) {
            const Interval range = partition(length, owner, group_.size());
            const int handler = layout_.local_rank(layout_.handler(node(), owner));
            y.write(start + begin + range.begin, range.length(),
                    segment_.buffer(handler, buffer) + range.begin);
          }
        });
  }

  const RankGroup group_;
  SharedSegment& segment_;
  const NodeLayout& layout_;
  Dtype dtype_;
  ReduceOp reduction_;
  std::int64_t bytes_;
  std::vector<Partition> handled_;  // one is this rank's own
};

}  // namespace

bool pays(const CollectiveContext& context, all_reduce::NetworkModel network, std::int64_t bytes) {
  return static_cast<double>(bytes) * network.seconds_per_byte > context.size() * network.latency;
}

void all_reduce(const CollectiveContext& context, SharedSegment& segment, const FlatBucket& x,
                const FlatBucket& y, Dtype dtype, ReduceOp reduction) {
  const NodeLayout layout(context.transport.topology());
  for_each_chunk(x.bytes(), kMessageBytes, [&](std::int64_t start, std::int64_t bytes) {
    Message(context, segment, layout, dtype, reduction, bytes).run(x, y, start);
  });
}

}  // namespace renga::unequal_nodes
