#include "collectives/hierarchical.h"

#include <array>
#include <cstring>
#include <functional>

#include "collectives/partition.h"

namespace renga::hierarchical {

namespace {

// A message of a piece. Longer ones than 64 KiB wait in MPI until their receivers ask for them,
// which takes as long as a rank needs to get a core.
constexpr std::int64_t kMessageBytes = 60 << 10;
// The next stage of a piece comes after so many further pieces have begun.
constexpr std::int64_t kLag = 2;
// An all-reduce in one piece, or in pieces between many nodes, takes so many bytes at once.
constexpr std::int64_t kMostBytes = 16 * SharedSegment::kBufferBytes;

// The ranks of all nodes that have the same local rank.
RankGroup peers_of(const CollectiveContext& context) {
  const Topology& topology = context.transport.topology();
  return strided_ranks(context, topology.intra_rank, topology.intra_size, topology.inter_size);
}

// A chunk of which a buffer of the segment holds `count`.
std::int64_t chunk_bytes(int count) { return SharedSegment::kBufferBytes / count / 64 * 64; }

// How much of [begin, begin + length) there is of a bucket.
std::int64_t clipped(const FlatBucket& bucket, std::int64_t begin, std::int64_t length) {
  return std::clamp<std::int64_t>(bucket.bytes() - begin, 0, length);
}

// A mean stays a sum until all operands have been added.
ReduceOp without_mean(ReduceOp reduction) {
  return reduction == ReduceOp::mean ? ReduceOp::sum : reduction;
}

// A part of a vector, and its messages that are in flight.
struct Piece {
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
  Buffer own = {};     // what this rank has of it
  Buffer others = {};  // what the ranks of other nodes have sent
  std::int64_t n = 0;  // elements
  Transfers transfers = {};
};

// Cuts [0, bytes) into pieces and calls the stages of each in order, in turn with earlier stages of
// the pieces after it. Messages that a stage has started are complete before the
// next one of the piece.
template <std::size_t kStages>
void for_each_piece(const CollectiveContext& context, std::int64_t bytes, std::int64_t piece_bytes,
                    const std::array<std::function<void(Piece&)>, kStages>& stages) {
  constexpr auto last = static_cast<std::int64_t>(kStages) - 1;
  std::array<Piece, kLag * last + 1> pieces;
  const std::int64_t count = (bytes + piece_bytes - 1) / piece_bytes;
  try {
    for (std::int64_t step = 0; step < count + kLag * last; ++step) {
      for (std::int64_t stage = 0; stage <= last; ++stage) {
        const std::int64_t i = step - kLag * stage;
        if (i < 0 || i >= count) continue;
        Piece& piece = pieces[static_cast<std::size_t>(i) % pieces.size()];
        if (stage == 0) {
          piece = {.begin = i * piece_bytes,
                   .bytes = std::min(piece_bytes, bytes - i * piece_bytes)};
        }
        wait_all_or_cancel(piece.transfers, context);
        stages[static_cast<std::size_t>(stage)](piece);
      }
    }
  } catch (...) {
    for (Piece& piece : pieces) {
      if (!cancel(std::move(piece.transfers), {})) context.memory_in_use = true;
    }
    throw;
  }
}

// An all-reduce on two levels. Of each chunk that goes through the segment, a rank reduces its
// partition.
class AllReduce {
 public:
  AllReduce(const CollectiveContext& context, SharedSegment& segment, const FlatBucket& x,
            const FlatBucket& y, Dtype dtype, ReduceOp reduction)
      : context_(context),
        segment_(segment),
        peers_(peers_of(context)),
        x_(x),
        y_(y),
        dtype_(dtype),
        reduction_(reduction) {}

  // Each rank sends a partition of its partial result to each peer, and then its part of the
  // result.
  void run_in_pieces(std::int64_t piece_bytes) {
    for_each_piece<3>(context_, x_.bytes(), piece_bytes,
                      {[&](Piece& piece) {
                         reduce_within_node(piece);
                         send_partitions(piece);
                       },
                       [&](Piece& piece) {
                         reduce_own_partition(piece);
                         send_result(piece);
                       },
                       [&](Piece& piece) { share_within_node(piece); }});
  }

  // Reduces between nodes by the algorithm that is the fastest on the network.
  void run_at_once(const all_reduce::NetworkModel& network) {
    for_each_chunk(x_.bytes(), kMostBytes, [&](std::int64_t begin, std::int64_t bytes) {
      Piece piece{.begin = begin, .bytes = bytes};
      reduce_within_node(piece);
      all_reduce::run(peers_, partial_of(piece), network, {});
      share_within_node(piece);
    });
  }

 private:
  all_reduce::Vector partial_of(const Piece& piece) const {
    return {piece.own.get(), piece.n, partial_dtype(dtype_), without_mean(reduction_)};
  }

  // Calls visit(begin of a chunk, its length, its buffers, this rank's partition, where its partial
  // result is).
  template <class Visit>
  void for_each_partition(const Piece& piece, const Visit& visit) {
    std::byte* partial = piece.own.get();
    for_each_chunk(
        piece.bytes, SharedSegment::kBufferBytes, [&](std::int64_t begin, std::int64_t length) {
          const Interval own = partition(length, segment_.local_rank(), segment_.ranks());
          visit(piece.begin + begin, length, segment_.next_buffer(), own, partial);
          partial += own.length() / size_of(dtype_) * size_of(partial_dtype(dtype_));
        });
  }

  void reduce_within_node(Piece& piece) {
    for_each_chunk(
        piece.bytes, SharedSegment::kBufferBytes, [&](std::int64_t, std::int64_t length) {
          piece.n +=
              partition(length, segment_.local_rank(), segment_.ranks()).length() / size_of(dtype_);
        });
    piece.own = make_buffer(context_, piece.n * size_of(partial_dtype(dtype_)));
    for_each_partition(piece, [&](std::int64_t begin, std::int64_t length, int buffer, Interval own,
                                  std::byte* partial) {
      x_.read(begin, length, segment_.buffer(segment_.local_rank(), buffer));
      segment_.barrier(context_);
      std::vector<const std::byte*> xs;
      for (int r = 0; r < segment_.ranks(); ++r) {
        xs.push_back(segment_.buffer(r, buffer) + own.begin);
      }
      reduce_to_partial(reduction_, dtype_, xs, partial, own.length() / size_of(dtype_));
    });
  }

  void share_within_node(Piece& piece) {
    for_each_partition(piece, [&](std::int64_t begin, std::int64_t length, int buffer, Interval own,
                                  std::byte* partial) {
      finish_partial(reduction_, dtype_, context_.size(), partial,
                     segment_.buffer(segment_.local_rank(), buffer) + own.begin,
                     own.length() / size_of(dtype_));
      segment_.barrier(context_);
      for (int r = 0; r < segment_.ranks(); ++r) {
        const Interval range = partition(length, r, segment_.ranks());
        y_.write(begin + range.begin, range.length(), segment_.buffer(r, buffer) + range.begin);
      }
    });
  }

  std::span<std::byte> partition_of(const Piece& piece, int peer) const {
    return partial_of(piece).partition_of(peer, peers_.size());
  }
  std::span<std::byte> operand_of(const Piece& piece, int peer) const {
    const auto own = partition_of(piece, peers_.position);
    if (peer == peers_.position) return own;
    return byte_span(piece.others.get() + peer * std::ssize(own), std::ssize(own));
  }

  void send_partitions(Piece& piece) {
    piece.others =
        make_buffer(context_, peers_.size() * std::ssize(partition_of(piece, peers_.position)));
    post_send_receive_all(
        piece.transfers, peers_, [&](int to) { return partition_of(piece, to); },
        [&](int from) { return operand_of(piece, from); });
  }

  void reduce_own_partition(Piece& piece) {
    const auto own = partition_of(piece, peers_.position);
    std::vector<const std::byte*> xs;
    for (int peer = 0; peer < peers_.size(); ++peer) xs.push_back(operand_of(piece, peer).data());
    const Dtype dtype = partial_dtype(dtype_);
    reduce(without_mean(reduction_), dtype, xs, own.data(), std::ssize(own) / size_of(dtype));
  }

  void send_result(Piece& piece) {
    post_send_receive_all(
        piece.transfers, peers_, [&](int) { return partition_of(piece, peers_.position); },
        [&](int from) { return partition_of(piece, from); });
  }

  const CollectiveContext& context_;
  SharedSegment& segment_;
  const RankGroup peers_;
  const FlatBucket& x_;
  const FlatBucket& y_;
  const Dtype dtype_;
  const ReduceOp reduction_;
};

}  // namespace

void all_reduce(const CollectiveContext& context, SharedSegment& segment,
                all_reduce::NetworkModel network, const FlatBucket& x, const FlatBucket& y,
                Dtype dtype, ReduceOp reduction) {
  AllReduce all(context, segment, x, y, dtype, reduction);
  const std::int64_t piece_bytes = std::min(context.size() * kMessageBytes, kMostBytes);
  // Each rank sends a message to each other node, twice: where messages are shorter than their
  // latency, other algorithms send fewer.
  const auto message_bytes = static_cast<double>(std::min(x.bytes(), piece_bytes)) / context.size();
  if (message_bytes * network.seconds_per_byte > network.latency) {
    all.run_in_pieces(piece_bytes);
  } else {
    all.run_at_once(network);
  }
}

void reduce_scatter(const CollectiveContext& context, SharedSegment& segment, const FlatBucket& x,
                    const FlatBucket& y, Dtype dtype, ReduceOp reduction) {
  const RankGroup peers = peers_of(context);
  const int rank = segment.local_rank(), ranks = segment.ranks();
  const std::int64_t itemsize = size_of(dtype), partial_itemsize = size_of(partial_dtype(dtype));
  const auto partial_bytes = [&](const Piece& piece) { return piece.n * partial_itemsize; };

  // One partial result for the block of each peer.
  const auto reduce_within_node = [&](Piece& piece) {
    piece.n = piece.bytes / itemsize;
    piece.own = make_buffer(context, peers.size() * partial_bytes(piece));
    for_each_chunk(piece.bytes, chunk_bytes(context.size()),
                   [&](std::int64_t begin, std::int64_t length) {
                     const int buffer = segment.next_buffer();
                     for (int r = 0; r < context.size(); ++r) {
                       x.read(r * y.bytes() + piece.begin + begin, length,
                              segment.buffer(rank, buffer) + r * length);
                     }
                     segment.barrier(context);
                     for (int peer = 0; peer < peers.size(); ++peer) {
                       std::vector<const std::byte*> xs;
                       for (int r = 0; r < ranks; ++r) {
                         xs.push_back(segment.buffer(r, buffer) + peers.ranks[peer] * length);
                       }
                       reduce_to_partial(
                           reduction, dtype, xs,
                           piece.own.get() + (peer * piece.n + begin / itemsize) * partial_itemsize,
                           length / itemsize);
                     }
                   });
  };
  const auto operand_of = [&](const Piece& piece, int peer) {
    const Buffer& from = peer == peers.position ? piece.own : piece.others;
    return byte_span(from.get() + peer * partial_bytes(piece), partial_bytes(piece));
  };
  const auto send_partial_results = [&](Piece& piece) {
    piece.others = make_buffer(context, peers.size() * partial_bytes(piece));
    post_send_receive_all(
        piece.transfers, peers,
        [&](int to) {
          return byte_span(piece.own.get() + to * partial_bytes(piece), partial_bytes(piece));
        },
        [&](int from) { return operand_of(piece, from); });
  };
  const auto reduce_own_block = [&](Piece& piece) {
    std::vector<const std::byte*> xs;
    for (int peer = 0; peer < peers.size(); ++peer) xs.push_back(operand_of(piece, peer).data());
    std::byte* const sum = piece.own.get();
    reduce(without_mean(reduction), partial_dtype(dtype), xs, sum, piece.n);
    finish_partial(reduction, dtype, context.size(), sum, piece.others.get(), piece.n);
    y.write(piece.begin, piece.bytes, piece.others.get());
  };
  for_each_piece<2>(context, y.bytes(), kMessageBytes,
                    {[&](Piece& piece) {
                       reduce_within_node(piece);
                       send_partial_results(piece);
                     },
                     reduce_own_block});
}

void all_gather(const CollectiveContext& context, SharedSegment& segment, const FlatBucket& x,
                const std::vector<FlatBucket>& ys) {
  const RankGroup peers = peers_of(context);
  const int rank = segment.local_rank(), ranks = segment.ranks();
  const auto bucket_of = [&](int peer, int local_rank) -> const FlatBucket& {
    return ys[static_cast<std::size_t>(peers.ranks[peer] - rank + local_rank)];
  };
  std::int64_t longest = 0;
  for (const FlatBucket& y : ys) longest = std::max(longest, y.bytes());

  const auto exchange_blocks = [&](Piece& piece) {
    piece.own = make_buffer(context, peers.size() * piece.bytes);
    const auto block_of = [&](int peer) {
      return byte_span(piece.own.get() + peer * piece.bytes,
                       clipped(bucket_of(peer, rank), piece.begin, piece.bytes));
    };
    const auto own = block_of(peers.position);
    if (!own.empty()) x.read(piece.begin, std::ssize(own), own.data());
    post_send_receive_all(
        piece.transfers, peers, [&](int) { return own; }, block_of);
  };
  const auto share_within_node = [&](Piece& piece) {
    const std::int64_t chunk = chunk_bytes(peers.size());
    for_each_chunk(piece.bytes, chunk, [&](std::int64_t begin, std::int64_t length) {
      const int buffer = segment.next_buffer();
      for (int peer = 0; peer < peers.size(); ++peer) {
        std::memcpy(
            segment.buffer(rank, buffer) + peer * chunk,
            piece.own.get() + peer * piece.bytes + begin,
            static_cast<std::size_t>(clipped(bucket_of(peer, rank), piece.begin + begin, length)));
      }
      segment.barrier(context);
      for (int peer = 0; peer < peers.size(); ++peer) {
        for (int r = 0; r < ranks; ++r) {
          const FlatBucket& y = bucket_of(peer, r);
          y.write(piece.begin + begin, clipped(y, piece.begin + begin, length),
                  segment.buffer(r, buffer) + peer * chunk);
        }
      }
    });
  };
  for_each_piece<2>(context, longest, kMessageBytes, {exchange_blocks, share_within_node});
}

}  // namespace renga::hierarchical
