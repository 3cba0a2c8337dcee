#include "collectives/peer_reads.h"

#include <chrono>
#include <cstring>

#include "collectives/partition.h"
#include "collectives/shared_memory.h"

namespace renga::peer_reads {

namespace {

constexpr std::int64_t kLeastBytes = std::int64_t{1} << 21;
// Arrays have at least so many bytes on average: each array costs two system calls per peer.
constexpr std::int64_t kLeastArrayBytes = std::int64_t{1} << 16;
// A piece of each operand, and of the result, stay in the second-level cache.
constexpr std::int64_t kPieceBytes = std::int64_t{1} << 18;

std::int64_t bytes_of(const Array& x) { return x.size() * x.itemsize(); }

std::int64_t bytes_of(const std::vector<Array>& xs) {
  std::int64_t bytes = 0;
  for (const Array& x : xs) bytes += bytes_of(x);
  return bytes;
}

// Where the arrays of one rank are. In a staging buffer: whether all are contiguous, then x and y
// in turn.
struct Addresses {
  bool contiguous;
  std::vector<std::byte*> xs;
  std::vector<std::byte*> ys;
};

void publish(std::byte* buffer, const std::vector<Array>& xs, const std::vector<Array>& ys) {
  const auto is_contiguous = [](const Array& x) { return x.is_contiguous(); };
  std::vector<std::uintptr_t> words = {std::ranges::all_of(xs, is_contiguous) &&
                                       std::ranges::all_of(ys, is_contiguous)};
  for (std::size_t i = 0; i < xs.size(); ++i) {
    words.push_back(reinterpret_cast<std::uintptr_t>(xs[i].data()));
    words.push_back(reinterpret_cast<std::uintptr_t>(ys[i].data()));
  }
  std::memcpy(buffer, words.data(), words.size() * sizeof(words[0]));
}

Addresses published(const std::byte* buffer, std::size_t arrays) {
  std::vector<std::uintptr_t> words(1 + 2 * arrays);
  std::memcpy(words.data(), buffer, words.size() * sizeof(words[0]));
  Addresses found{words[0] != 0, {}, {}};
  for (std::size_t i = 0; i < arrays; ++i) {
    found.xs.push_back(reinterpret_cast<std::byte*>(words[1 + 2 * i]));
    found.ys.push_back(reinterpret_cast<std::byte*>(words[2 + 2 * i]));
  }
  return found;
}

// The bytes of the i-th array that a rank reduces. Which rank reduces an array of one cache line
// rotates.
Interval own_range(const Array& x, std::size_t i, int rank, int ranks) {
  return partition(bytes_of(x), (rank + static_cast<int>(i)) % ranks, ranks);
}

// One all-reduce, after the addresses have been exchanged.
struct Exchange {
  const CollectiveContext& context;
  const std::vector<Addresses>& addresses;  // by rank
  Dtype dtype;
  ReduceOp reduction;

  int rank() const { return context.rank(); }

  // `scratch` has one piece for each of the other ranks.
  void reduce_range(std::size_t i, Interval range, std::byte* scratch, std::int64_t piece) const {
    for_each_chunk(range.length(), piece, [&](std::int64_t begin, std::int64_t length) {
      const std::int64_t offset = range.begin + begin;
      std::vector<const std::byte*> operands(addresses.size());
      std::byte* next = scratch;
      for (int step = 0; step < context.size(); ++step) {
        const int peer = (rank() + step) % context.size();
        const auto r = static_cast<std::size_t>(peer);
        operands[r] = addresses[r].xs[i] + offset;
        if (peer == rank()) continue;
        context.transport.read_peer(peer, operands[r], next, length);
        operands[r] = next;
        next += piece;
      }
      std::byte* y = addresses[static_cast<std::size_t>(rank())].ys[i] + offset;
      reduce(reduction, dtype, operands, y, length / size_of(dtype));
    });
  }

  void gather(std::size_t i, const Array& y) const {
    for (int step = 1; step < context.size(); ++step) {
      const int peer = (rank() + step) % context.size();
      const Interval range = own_range(y, i, peer, context.size());
      if (range.length() == 0) continue;
      context.transport.read_peer(peer,
                                  addresses[static_cast<std::size_t>(peer)].ys[i] + range.begin,
                                  y.data() + range.begin, range.length());
    }
  }
};

}  // namespace

bool pays(const CollectiveContext& context, const std::vector<Array>& xs) {
  const auto arrays = std::ssize(xs);
  const std::int64_t bytes = bytes_of(xs);
  const auto words = (1 + 2 * arrays) * static_cast<std::int64_t>(sizeof(std::uintptr_t));
  return context.transport.can_read_peers() && context.size() > 1 && bytes >= kLeastBytes &&
         bytes >= arrays * kLeastArrayBytes && words <= SharedSegment::kBufferBytes;
}

bool all_reduce(const CollectiveContext& context, SharedSegment& segment,
                const std::vector<Array>& xs, const std::vector<Array>& ys, ReduceOp reduction) {
  const int rank = segment.local_rank(), ranks = segment.ranks();
  const int buffer = segment.next_buffer();
  publish(segment.buffer(rank, buffer), xs, ys);
  segment.barrier(context);
  std::vector<Addresses> addresses;
  bool contiguous = true;
  for (int r = 0; r < ranks; ++r) {
    addresses.push_back(published(segment.buffer(r, buffer), xs.size()));
    contiguous = contiguous && addresses.back().contiguous;
  }
  if (!contiguous) return false;
  const Exchange exchange{context, addresses, xs[0].dtype(), reduction};
  // Since the barrier, no rank reads this rank's other buffer any more.
  std::byte* scratch = segment.buffer(rank, 1 - buffer);
  const std::int64_t piece =
      std::min(kPieceBytes, SharedSegment::kBufferBytes / std::max(1, ranks - 1) / 64 * 64);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    exchange.reduce_range(i, own_range(xs[i], i, rank, ranks), scratch, piece);
  }
  segment.barrier(context);
  for (std::size_t i = 0; i < ys.size(); ++i) exchange.gather(i, ys[i]);
  segment.barrier(context);
  return true;
}

bool is_faster(const CollectiveContext& context, SharedSegment& segment) {
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t elements = std::int64_t{1} << 20;
  constexpr int rounds = 3;
  const Array x = empty({elements}, Dtype::float32);
  std::memset(x.data(), 0, static_cast<std::size_t>(bytes_of(x)));
  const FlatBucket bucket({x});
  const Array seconds = empty({2}, Dtype::float64);
  auto* shortest = reinterpret_cast<double*>(seconds.data());
  std::fill_n(shortest, 2, std::numeric_limits<double>::infinity());
  for (int i = 0; i < 2 * rounds; ++i) {
    segment.barrier(context);
    const auto start = Clock::now();
    if (i % 2 == 0) {
      shared_memory::all_reduce(context, segment, bucket, bucket, x.dtype(), ReduceOp::sum);
    } else {
      all_reduce(context, segment, {x}, {x}, ReduceOp::sum);
    }
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    shortest[i % 2] = std::min(shortest[i % 2], elapsed.count());
  }
  const FlatBucket slowest({seconds});
  shared_memory::all_reduce(context, segment, slowest, slowest, seconds.dtype(), ReduceOp::max);
  return shortest[1] < shortest[0];
}

}  // namespace renga::peer_reads
