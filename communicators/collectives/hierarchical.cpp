#include "collectives/hierarchical.h"

#include "collectives/partition.h"

namespace renga::hierarchical {

namespace {

// Between nodes, the partitions of this many bytes form one message, which hides the latency.
constexpr std::int64_t kMessageBytes = 16 * SharedSegment::kBufferBytes;

// This rank's partition of a chunk, in elements.
Interval own_elements(const SharedSegment& segment, std::int64_t length, std::int64_t itemsize) {
  const Interval bytes = partition(length, segment.local_rank(), segment.ranks());
  return {bytes.begin / itemsize, bytes.end / itemsize};
}

}  // namespace

void all_reduce(const CollectiveContext& context, SharedSegment& segment,
                all_reduce::NetworkModel network, const FlatBucket& x, const FlatBucket& y,
                Dtype dtype, ReduceOp reduction) {
  const std::int64_t itemsize = size_of(dtype), partial_itemsize = size_of(partial_dtype(dtype));
  const int rank = segment.local_rank(), ranks = segment.ranks();
  // The ranks of all nodes that have the same local rank.
  const RankGroup peers =
      strided_ranks(context, rank, ranks, context.transport.topology().inter_size);
  const Buffer partial = make_buffer(context, kMessageBytes / itemsize * partial_itemsize);
  // A mean stays a sum until all operands have been added.
  const ReduceOp between_nodes = reduction == ReduceOp::mean ? ReduceOp::sum : reduction;

  for_each_chunk(x.bytes(), kMessageBytes, [&](std::int64_t start, std::int64_t message_bytes) {
    std::int64_t n = 0;  // elements in `partial`
    for_each_chunk(message_bytes, SharedSegment::kBufferBytes,
                   [&](std::int64_t begin, std::int64_t length) {
                     const int buffer = segment.next_buffer();
                     x.read(start + begin, length, segment.buffer(rank, buffer));
                     segment.barrier(context);
                     const Interval own = own_elements(segment, length, itemsize);
                     std::vector<const std::byte*> xs;
                     for (int r = 0; r < ranks; ++r) {
                       xs.push_back(segment.buffer(r, buffer) + own.begin * itemsize);
                     }
                     reduce_to_partial(reduction, dtype, xs, partial.get() + n * partial_itemsize,
                                       own.length());
                     n += own.length();
                   });
    run(peers, {partial.get(), n, partial_dtype(dtype), between_nodes}, network, {});
    n = 0;
    for_each_chunk(
        message_bytes, SharedSegment::kBufferBytes, [&](std::int64_t begin, std::int64_t length) {
          const int buffer = segment.next_buffer();
          const Interval own = own_elements(segment, length, itemsize);
          finish_partial(reduction, dtype, context.size(), partial.get() + n * partial_itemsize,
                         segment.buffer(rank, buffer) + own.begin * itemsize, own.length());
          n += own.length();
          segment.barrier(context);
          for (int r = 0; r < ranks; ++r) {
            const Interval range = partition(length, r, ranks);
            y.write(start + begin + range.begin, range.length(),
                    segment.buffer(r, buffer) + range.begin);
          }
        });
  });
}

}  // namespace renga::hierarchical
