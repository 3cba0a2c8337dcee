#include "collectives/shared_memory.h"

#include <cstring>

#include "collectives/partition.h"

namespace renga::shared_memory {

namespace {

// Reduces the same range of every rank's buffer. This rank's operand is `own` if that is not null.
void reduce_range(SharedSegment& segment, int buffer, Range range, Dtype dtype, Reduction reduction,
                  Results ys, const std::byte* own = nullptr) {
  std::vector<const std::byte*>& xs = segment.operands();
  for (int r = 0; r < segment.ranks(); ++r) xs[r] = segment.buffer(r, buffer) + range.begin;
  if (own != nullptr) xs[segment.local_rank()] = own;
  reduce(reduction, dtype, xs, ys, range.length() / size_of(dtype));
}
void reduce_range(SharedSegment& segment, int buffer, Range range, Dtype dtype, Reduction reduction,
                  std::byte* y, const std::byte* own = nullptr) {
  reduce_range(segment, buffer, range, dtype, reduction, Results(&y, 1), own);
}

void all_reduce_small(const CollectiveContext& context, SharedSegment& segment, const FlatBucket& x,
                      const FlatBucket& y, Dtype dtype, Reduction reduction) {
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
                      std::int64_t bytes, Dtype dtype, Reduction reduction) {
  const int buffer = segment.next_buffer();
  std::memcpy(segment.buffer(segment.local_rank(), buffer), x, static_cast<std::size_t>(bytes));
  segment.barrier(context);
  // With more than two operands, the reduction may write `x` before it has read this operand.
  const std::byte* own = segment.ranks() == 2 ? x : nullptr;
  reduce_range(segment, buffer, {0, bytes}, dtype, reduction, x, own);
}

void all_reduce(const CollectiveContext& context, SharedSegment& segment, const FlatBucket& x,
                const FlatBucket& y, Dtype dtype, Reduction reduction) {
  if (x.bytes() <= kSmallBytes) return all_reduce_small(context, segment, x, y, dtype, reduction);
  const int rank = segment.local_rank(), ranks = segment.ranks();
  for_each_chunk(
      x.bytes(), SharedSegment::kBufferBytes, [&](std::int64_t begin, std::int64_t length) {
        const int buffer = segment.next_buffer();
        const Range own = partition(length, rank, ranks);
        // Nobody else reads this rank's operand of its own partition, nor writes its result: both
        // stay where they are if they are contiguous.
        const std::byte* own_x = x.contiguous_range(begin + own.begin, own.length());
        std::byte* own_y = y.contiguous_range(begin + own.begin, own.length());
        for (int r = 0; r < ranks; ++r) {
          if (r == rank && own_x != nullptr) continue;
          const Range range = partition(length, r, ranks);
          x.read(begin + range.begin, range.length(), segment.buffer(rank, buffer) + range.begin);
        }
        segment.barrier(context);
        std::byte* const results[] = {segment.buffer(rank, buffer) + own.begin, own_y};
        reduce_range(segment, buffer, own, dtype, reduction,
                     Results(results, own_y != nullptr ? 2 : 1), own_x);
        segment.barrier(context);
        for (int r = 0; r < ranks; ++r) {
          if (r == rank && own_y != nullptr) continue;
          const Range range = partition(length, r, ranks);
          y.write(begin + range.begin, range.length(), segment.buffer(r, buffer) + range.begin);
        }
      });
}

void all_reduce_windows(const CollectiveContext& context, SharedSegment& segment,
                        const std::vector<Array>& xs, const std::vector<PeerPointers>& peers,
                        Reduction reduction) {
  segment.barrier(context);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    // An array of one cache line has one partition; which rank reduces it rotates.
    const int rank = (segment.local_rank() + static_cast<int>(i)) % segment.ranks();
    const Range own = partition(xs[i].size() * xs[i].itemsize(), rank, segment.ranks());
    PeerPointers pointers = peers[i];
    for (std::byte*& pointer : pointers) pointer += own.begin;
    reduce(reduction, xs[i].dtype(), Operands(pointers), Results(pointers),
           own.length() / xs[i].itemsize());
  }
  segment.barrier(context);
}

void reduce_scatter(const CollectiveContext& context, SharedSegment& segment, const FlatBucket& x,
                    const FlatBucket& y, Dtype dtype, Reduction reduction) {
  const int rank = segment.local_rank(), ranks = segment.ranks();
  for_each_chunk(y.bytes(), block_bytes(segment), [&](std::int64_t begin, std::int64_t length) {
    const int buffer = segment.next_buffer();
    std::byte* blocks = segment.buffer(rank, buffer);
    // No other rank reads this rank's own block: it is used in place if it is contiguous.
    const std::byte* own_block = x.contiguous_range(rank * y.bytes() + begin, length);
    for (int r = 0; r < ranks; ++r) {
      if (r == rank && own_block != nullptr) continue;
      x.read(r * y.bytes() + begin, length, blocks + r * length);
    }
    segment.barrier(context);
    const Range own{rank * length, (rank + 1) * length};
    std::byte* destination = y.contiguous_range(begin, length);
    std::byte* result = destination != nullptr ? destination : blocks + own.begin;
    reduce_range(segment, buffer, own, dtype, reduction, result, own_block);
    if (destination == nullptr) y.write(begin, length, result);
  });
}

void all_gather(const CollectiveContext& context, SharedSegment& segment, const Array& x,
                const std::vector<Array>& ys) {
  const FlatBucket own({x});
  std::vector<FlatBucket> results;
  std::int64_t longest = 0;
  for (const Array& y : ys) {
    longest = std::max(longest, results.emplace_back(std::vector{y}).bytes());
  }
  for_each_chunk(
      longest, SharedSegment::kBufferBytes, [&](std::int64_t begin, std::int64_t length) {
        const int buffer = segment.next_buffer();
        own.read(begin, clipped(own, begin, length), segment.buffer(segment.local_rank(), buffer));
        segment.barrier(context);
        for (int r = 0; r < segment.ranks(); ++r) {
          results[r].write(begin, clipped(results[r], begin, length), segment.buffer(r, buffer));
        }
      });
}

void all_to_allv(const CollectiveContext& context, SharedSegment& segment,
                 const std::vector<Array>& sent, const std::vector<Array>& received) {
  const int rank = segment.local_rank(), ranks = segment.ranks();
  const auto bucket_of = [](const Array& x) {
    return FlatBucket(x.defined() ? std::vector{x} : std::vector<Array>{});
  };
  std::vector<FlatBucket> sources, destinations;
  std::int64_t longest = 0;
  for (int r = 0; r < ranks; ++r) {
    longest = std::max(longest, sources.emplace_back(bucket_of(sent[r])).bytes());
    destinations.push_back(bucket_of(received[r]));
  }
  longest = max_over_ranks(context, segment, longest);
  const std::int64_t block = block_bytes(segment);
  for_each_chunk(longest, block, [&](std::int64_t begin, std::int64_t length) {
    const int buffer = segment.next_buffer();
    for (int r = 0; r < ranks; ++r) {
      const FlatBucket& x = sources[r];
      x.read(begin, clipped(x, begin, length), segment.buffer(rank, buffer) + r * block);
    }
    segment.barrier(context);
    for (int r = 0; r < ranks; ++r) {
      const FlatBucket& y = destinations[r];
      y.write(begin, clipped(y, begin, length), segment.buffer(r, buffer) + rank * block);
    }
  });
}

void broadcast(const CollectiveContext& context, SharedSegment& segment, const Array& x, int root) {
  const FlatBucket bucket({x});
  const bool is_root = segment.local_rank() == root;
  for_each_chunk(bucket.bytes(), SharedSegment::kBufferBytes,
                 [&](std::int64_t begin, std::int64_t length) {
                   const int buffer = segment.next_buffer();
                   if (is_root) bucket.read(begin, length, segment.buffer(root, buffer));
                   segment.barrier(context);
                   if (!is_root) bucket.write(begin, length, segment.buffer(root, buffer));
                 });
}

}  // namespace renga::shared_memory
