#include "collectives/shared_memory.h"

#include <cstring>

#include "collectives/partition.h"
#include "collectives/peer_reads.h"
#include "collectives/point_to_point.h"

namespace renga::shared_memory {

namespace {

// Reduces the same range of every rank's buffer. This rank's operand is `own` if that is not null.
void reduce_range(SharedSegment& segment, int buffer, Interval range, Dtype dtype,
                  ReduceOp reduction, Results ys, const std::byte* own = nullptr) {
  std::vector<const std::byte*>& xs = segment.operands();
  for (int r = 0; r < segment.ranks(); ++r) xs[r] = segment.buffer(r, buffer) + range.begin;
  if (own != nullptr) xs[segment.local_rank()] = own;
  reduce(reduction, dtype, xs, ys, range.length() / size_of(dtype));
}
void reduce_range(SharedSegment& segment, int buffer, Interval range, Dtype dtype,
                  ReduceOp reduction, std::byte* y, const std::byte* own = nullptr) {
  reduce_range(segment, buffer, range, dtype, reduction, Results(&y, 1), own);
}

void all_reduce_small(const CollectiveContext& context, SharedSegment& segment, const FlatBucket& x,
                      const FlatBucket& y, Dtype dtype, ReduceOp reduction) {
  alignas(64) std::byte result[kSmallBytes];
  const int buffer = segment.next_buffer();
  x.read(0, x.bytes(), segment.buffer(segment.local_rank(), buffer));
  segment.barrier(context);
  reduce_range(segment, buffer, {0, x.bytes()}, dtype, reduction, result);
  y.write(0, y.bytes(), result);
}

// The chunk of an all-to-all that goes to one rank: a buffer holds one for each.
std::int64_t block_bytes(const SharedSegment& segment) {
  return SharedSegment::kBufferBytes / segment.ranks() / 64 * 64;
}

// How much of the chunk [begin, begin + length) there is of a bucket of another size.
std::int64_t clipped(const FlatBucket& bucket, std::int64_t begin, std::int64_t length) {
  return std::clamp<std::int64_t>(bucket.bytes() - begin, 0, length);
}

// One for each array; those of undefined arrays are empty.
std::vector<FlatBucket> buckets_of(const std::vector<Array>& xs) {
  std::vector<FlatBucket> buckets;
  buckets.reserve(xs.size());
  for (const Array& x : xs) buckets.emplace_back(std::span(&x, x.defined() ? 1 : 0));
  return buckets;
}

std::int64_t longest_of(const std::vector<FlatBucket>& buckets) {
  std::int64_t longest = 0;
  for (const FlatBucket& bucket : buckets) longest = std::max(longest, bucket.bytes());
  return longest;
}

// All ranks need the same number of barriers, but each knows only the sizes of its own messages.
std::int64_t max_over_ranks(const CollectiveContext& context, SharedSegment& segment,
                            std::int64_t bytes) {
  const int buffer = segment.next_buffer();
  std::memcpy(segment.buffer(segment.local_rank(), buffer), &bytes, sizeof(bytes));
  segment.barrier(context);
  for (int r = 0; r < segment.ranks(); ++r) {
    std::int64_t other = 0;
    std::memcpy(&other, segment.buffer(r, buffer), sizeof(other));
    bytes = std::max(bytes, other);
  }
  return bytes;
}

}  // namespace

void all_reduce_small(const CollectiveContext& context, SharedSegment& segment, std::byte* x,
                      std::int64_t bytes, Dtype dtype, ReduceOp reduction) {
  const int buffer = segment.next_buffer();
  std::memcpy(segment.buffer(segment.local_rank(), buffer), x, static_cast<std::size_t>(bytes));
  segment.barrier(context);
  // With more than two operands, the reduction may write `x` before it has read this operand.
  const std::byte* own = segment.ranks() == 2 ? x : nullptr;
  reduce_range(segment, buffer, {0, bytes}, dtype, reduction, x, own);
}

void all_reduce(const CollectiveContext& context, SharedSegment& segment, const FlatBucket& x,
                const FlatBucket& y, Dtype dtype, ReduceOp reduction) {
  if (x.bytes() <= kSmallBytes) return all_reduce_small(context, segment, x, y, dtype, reduction);
  const int rank = segment.local_rank(), ranks = segment.ranks();
  for_each_chunk(
      x.bytes(), SharedSegment::kBufferBytes, [&](std::int64_t begin, std::int64_t length) {
        const int buffer = segment.next_buffer();
        const Interval own = partition(length, rank, ranks);
        // Nobody else reads this rank's operand of its own partition, nor writes its result: both
        // stay where they are if they are contiguous.
        const std::byte* own_x = x.contiguous_range(begin + own.begin, own.length());
        std::byte* own_y = y.contiguous_range(begin + own.begin, own.length());
        for (int r = 0; r < ranks; ++r) {
          if (r == rank && own_x != nullptr) continue;
          const Interval range = partition(length, r, ranks);
          x.read(begin + range.begin, range.length(), segment.buffer(rank, buffer) + range.begin);
        }
        segment.barrier(context);
        std::byte* const results[] = {segment.buffer(rank, buffer) + own.begin, own_y};
        reduce_range(segment, buffer, own, dtype, reduction,
                     Results(results, own_y != nullptr ? 2 : 1), own_x);
        segment.barrier(context);
        for (int r = 0; r < ranks; ++r) {
          if (r == rank && own_y != nullptr) continue;
          const Interval range = partition(length, r, ranks);
          y.write(begin + range.begin, range.length(), segment.buffer(r, buffer) + range.begin);
        }
      });
}

namespace {

class SharedMemory final : public HostCollectives {
 public:
  explicit SharedMemory(SharedSegment& segment) : segment_(segment) {}

  SharedSegment* segment() override { return &segment_; }
  void begin(const Call& call) override { segment_.publish(call); }
  void end(const CollectiveContext& context) override {
    // Empty arrays have no chunk that was moved, and so there was no barrier.
    if (segment_.is_call_unchecked()) segment_.barrier(context);
  }
  void barrier(const CollectiveContext& context) override { segment_.barrier(context); }

  void all_reduce(const CollectiveContext& context, const Arguments& arguments) override {
    if (!arguments.peers.empty()) return all_reduce_windows(context, arguments);
    const Dtype dtype = arguments.communication_dtype();
    const FlatBucket x(arguments.xs, dtype), y(arguments.ys, dtype);
    if (arguments.algorithm) {
      segment_.barrier(context);
      point_to_point::all_reduce(context, {}, arguments.algorithm, x, y, dtype,
                                 arguments.reduction);
    } else if (dtype != arguments.dtype() || !all_reduce_by_reading(context, arguments)) {
      shared_memory::all_reduce(context, segment_, x, y, dtype, arguments.reduction);
    }
  }

  void reduce_scatter(const CollectiveContext& context, const Arguments& arguments) override {
    const Dtype dtype = arguments.dtype();
    const FlatBucket x(arguments.xs), y(arguments.ys);
    const int rank = segment_.local_rank(), ranks = segment_.ranks();
    for_each_chunk(y.bytes(), block_bytes(segment_), [&](std::int64_t begin, std::int64_t length) {
      const int buffer = segment_.next_buffer();
      std::byte* blocks = segment_.buffer(rank, buffer);
      // No other rank reads this rank's own block: it is used in place if it is contiguous.
      const std::byte* own_block = x.contiguous_range(rank * y.bytes() + begin, length);
      for (int r = 0; r < ranks; ++r) {
        if (r == rank && own_block != nullptr) continue;
        x.read(r * y.bytes() + begin, length, blocks + r * length);
      }
      segment_.barrier(context);
      const Interval own{rank * length, (rank + 1) * length};
      std::byte* destination = y.contiguous_range(begin, length);
      std::byte* result = destination != nullptr ? destination : blocks + own.begin;
      reduce_range(segment_, buffer, own, dtype, arguments.reduction, result, own_block);
      if (destination == nullptr) y.write(begin, length, result);
    });
  }

  void all_gather(const CollectiveContext& context, const Arguments& arguments) override {
    const FlatBucket own(arguments.xs);
    const std::vector<FlatBucket> results = buckets_of(arguments.ys);
    const std::int64_t longest = longest_of(results);
    for_each_chunk(
        longest, SharedSegment::kBufferBytes, [&](std::int64_t begin, std::int64_t length) {
          const int buffer = segment_.next_buffer();
          own.read(begin, clipped(own, begin, length),
                   segment_.buffer(segment_.local_rank(), buffer));
          segment_.barrier(context);
          for (int r = 0; r < segment_.ranks(); ++r) {
            results[r].write(begin, clipped(results[r], begin, length), segment_.buffer(r, buffer));
          }
        });
  }

  void all_to_all(const CollectiveContext& context, const Arguments& arguments) override {
    const int rank = segment_.local_rank(), ranks = segment_.ranks();
    const std::vector<FlatBucket> sources = buckets_of(arguments.xs);
    const std::vector<FlatBucket> destinations = buckets_of(arguments.ys);
    const std::int64_t longest = max_over_ranks(context, segment_, longest_of(sources));
    const std::int64_t block = block_bytes(segment_);
    for_each_chunk(longest, block, [&](std::int64_t begin, std::int64_t length) {
      const int buffer = segment_.next_buffer();
      for (int r = 0; r < ranks; ++r) {
        const FlatBucket& x = sources[r];
        x.read(begin, clipped(x, begin, length), segment_.buffer(rank, buffer) + r * block);
      }
      segment_.barrier(context);
      for (int r = 0; r < ranks; ++r) {
        const FlatBucket& y = destinations[r];
        y.write(begin, clipped(y, begin, length), segment_.buffer(r, buffer) + rank * block);
      }
    });
  }

  void broadcast(const CollectiveContext& context, const Arguments& arguments) override {
    const int root = static_cast<int>(*arguments.root);
    const bool is_root = segment_.local_rank() == root;
    const FlatBucket bucket(is_root ? arguments.xs : arguments.ys);
    for_each_chunk(bucket.bytes(), SharedSegment::kBufferBytes,
                   [&](std::int64_t begin, std::int64_t length) {
                     const int buffer = segment_.next_buffer();
                     if (is_root) bucket.read(begin, length, segment_.buffer(root, buffer));
                     segment_.barrier(context);
                     if (!is_root) bucket.write(begin, length, segment_.buffer(root, buffer));
                   });
  }

 private:
  // Reduces arrays in windows in place: each rank reads its partition of all ranks' arrays and
  // writes the result into all of them, without a copy.
  void all_reduce_windows(const CollectiveContext& context, const Arguments& arguments) {
    segment_.barrier(context);
    for (std::size_t i = 0; i < arguments.xs.size(); ++i) {
      const Array& x = arguments.xs[i];
      // An array of one cache line has one partition; which rank reduces it rotates.
      const int rank = (segment_.local_rank() + static_cast<int>(i)) % segment_.ranks();
      const Interval own = partition(x.size() * x.itemsize(), rank, segment_.ranks());
      PeerPointers pointers = arguments.peers[i];
      for (std::byte*& pointer : pointers) pointer += own.begin;
      reduce(arguments.reduction, x.dtype(), Operands(pointers), Results(pointers),
             own.length() / x.itemsize());
    }
    segment_.barrier(context);
  }

  // Goes by the ranks' memory, if that is faster than the segment; else does nothing and returns
  // false.
  bool all_reduce_by_reading(const CollectiveContext& context, const Arguments& arguments) {
    if (!peer_reads::pays(context, arguments.xs)) return false;
    if (!reading_is_faster_) reading_is_faster_ = peer_reads::is_faster(context, segment_);
    return *reading_is_faster_ && peer_reads::all_reduce(context, segment_, arguments.xs,
                                                         arguments.ys, arguments.reduction);
  }

  SharedSegment& segment_;
  std::optional<bool> reading_is_faster_;
};

}  // namespace

std::unique_ptr<HostCollectives> collectives(SharedSegment& segment) {
  return std::make_unique<SharedMemory>(segment);
}

}  // namespace renga::shared_memory
