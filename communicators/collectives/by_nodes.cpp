#include "collectives/by_nodes.h"

#include "collectives/shares.h"

namespace renga::by_nodes {

namespace {

// Between nodes the shares of this much go together, to hide the latency.
constexpr std::int64_t kTogether = 16 * Board::kSegment;

// This rank's share of a piece, in elements of the vector.
Stretch own_share(const Board& board, std::int64_t length, std::int64_t itemsize) {
  const Stretch bytes = share(length, board.place(), board.size());
  return {bytes.begin / itemsize, bytes.end / itemsize};
}

}  // namespace

void all_reduce(const Turn& turn, Board& board, all_reduce::Network network, const Flat& x,
                const Flat& y, Dtype dtype, Reduction reduction) {
  const std::int64_t item = size_of(dtype), wide = size_of(partial_dtype(dtype));
  const Placement& placement = turn.transport.placement();
  const Group column = every(turn, board.place(), board.size(), placement.inter_size);
  const Buffer partial = buffer(kTogether / item * wide);
  // A mean is a sum until all operands are in it.
  const Reduction on_the_way = reduction == Reduction::mean ? Reduction::sum : reduction;

  in_pieces(x.bytes(), kTogether, [&](std::int64_t start, std::int64_t together) {
    std::int64_t n = 0;
    in_pieces(together, Board::kSegment, [&](std::int64_t begin, std::int64_t length) {
      const int half = board.next_half();
      x.read(start + begin, length, board.segment(board.place(), half));
      board.meet(turn);
      const Stretch own = own_share(board, length, item);
      std::vector<const std::byte*> xs;
      for (int r = 0; r < board.size(); ++r) {
        xs.push_back(board.segment(r, half) + own.begin * item);
      }
      begin_partial(reduction, dtype, xs, partial.get() + n * wide, own.length());
      n += own.length();
    });
    run(column, {partial.get(), n, partial_dtype(dtype), on_the_way}, network, {});
    n = 0;
    in_pieces(together, Board::kSegment, [&](std::int64_t begin, std::int64_t length) {
      const int half = board.next_half();
      const Stretch own = own_share(board, length, item);
      end_partial(reduction, dtype, turn.size(), partial.get() + n * wide,
                  board.segment(board.place(), half) + own.begin * item, own.length());
      n += own.length();
      board.meet(turn);
      for (int r = 0; r < board.size(); ++r) {
        const Stretch theirs = share(length, r, board.size());
        y.write(start + begin + theirs.begin, theirs.length(),
                board.segment(r, half) + theirs.begin);
      }
    });
  });
}

}  // namespace renga::by_nodes
