#include "collectives/by_board.h"

#include <cstring>

#include "collectives/shares.h"

namespace renga::by_board {

namespace {

// Reduces the same range of every rank's segment; of this rank's `mine` where that is given.
void reduce_range(Board& board, int half, Stretch range, Dtype dtype, Reduction reduction,
                  std::byte* y, const std::byte* mine = nullptr) {
  std::vector<const std::byte*>& xs = board.operands();
  for (int r = 0; r < board.size(); ++r) xs[r] = board.segment(r, half) + range.begin;
  if (mine != nullptr) xs[board.place()] = mine;
  reduce(reduction, dtype, xs, y, range.length() / size_of(dtype));
}

void all_reduce_flat(const Turn& turn, Board& board, const Flat& x, const Flat& y, Dtype dtype,
                     Reduction reduction) {
  alignas(64) std::byte result[kSmall];
  const int half = board.next_half();
  x.read(0, x.bytes(), board.segment(board.place(), half));
  board.meet(turn);
  reduce_range(board, half, {0, x.bytes()}, dtype, reduction, result);
  y.write(0, y.bytes(), result);
}

}  // namespace

void all_reduce_short(const Turn& turn, Board& board, std::byte* x, std::int64_t bytes, Dtype dtype,
                      Reduction reduction) {
  const int half = board.next_half();
  std::memcpy(board.segment(board.place(), half), x, static_cast<std::size_t>(bytes));
  board.meet(turn);
  // Of more than two operands, this one's place may be written before it is read.
  const std::byte* mine = board.size() == 2 ? x : nullptr;
  reduce_range(board, half, {0, bytes}, dtype, reduction, x, mine);
}

void all_reduce(const Turn& turn, Board& board, const Flat& x, const Flat& y, Dtype dtype,
                Reduction reduction) {
  if (x.bytes() <= kSmall) return all_reduce_flat(turn, board, x, y, dtype, reduction);
  const int rank = board.place(), size = board.size();
  in_pieces(x.bytes(), Board::kSegment, [&](std::int64_t begin, std::int64_t length) {
    const int half = board.next_half();
    x.read(begin, length, board.segment(rank, half));
    board.meet(turn);
    const Stretch own = share(length, rank, size);
    reduce_range(board, half, own, dtype, reduction, board.segment(rank, half) + own.begin);
    board.meet(turn);
    for (int r = 0; r < size; ++r) {
      const Stretch theirs = share(length, r, size);
      y.write(begin + theirs.begin, theirs.length(), board.segment(r, half) + theirs.begin);
    }
  });
}

void all_reduce(const Turn& turn, Board& board, const std::vector<Array>& xs,
                const std::vector<Peers>& peers, Reduction reduction) {
  board.meet(turn);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    // The shares of short arrays fall to each rank in turn.
    const int place = (board.place() + static_cast<int>(i)) % board.size();
    const Stretch own = share(xs[i].size() * xs[i].itemsize(), place, board.size());
    Peers parts = peers[i];
    for (std::byte*& part : parts) part += own.begin;
    reduce(reduction, xs[i].dtype(), Operands(parts), Results(parts),
           own.length() / xs[i].itemsize());
  }
  board.meet(turn);
}

void reduce_scatter(const Turn& turn, Board& board, const Flat& x, const Flat& y, Dtype dtype,
                    Reduction reduction) {
  const int rank = board.place(), size = board.size();
  const std::int64_t piece = Board::kSegment / size / 64 * 64;
  in_pieces(y.bytes(), piece, [&](std::int64_t begin, std::int64_t length) {
    const int half = board.next_half();
    std::byte* mine = board.segment(rank, half);
    // What nobody else wants is read, and the result written, where it is if that has no gaps.
    const std::byte* kept = x.place(rank * y.bytes() + begin, length);
    for (int r = 0; r < size; ++r) {
      if (r == rank && kept != nullptr) continue;
      x.read(r * y.bytes() + begin, length, mine + r * length);
    }
    board.meet(turn);
    const Stretch own{rank * length, (rank + 1) * length};
    std::byte* result = y.place(begin, length);
    std::byte* sum = result != nullptr ? result : mine + own.begin;
    reduce_range(board, half, own, dtype, reduction, sum, kept);
    if (result == nullptr) y.write(begin, length, sum);
  });
}

void all_gather(const Turn& turn, Board& board, const Array& x, const std::vector<Array>& ys) {
  const Flat mine({x});
  std::vector<Flat> theirs;
  std::int64_t longest = 0;
  for (const Array& y : ys)
    longest = std::max(longest, theirs.emplace_back(std::vector{y}).bytes());
  const auto clipped = [](const Flat& flat, std::int64_t begin, std::int64_t length) {
    return std::clamp<std::int64_t>(flat.bytes() - begin, 0, length);
  };
  in_pieces(longest, Board::kSegment, [&](std::int64_t begin, std::int64_t length) {
    const int half = board.next_half();
    mine.read(begin, clipped(mine, begin, length), board.segment(board.place(), half));
    board.meet(turn);
    for (int r = 0; r < board.size(); ++r) {
      theirs[r].write(begin, clipped(theirs[r], begin, length), board.segment(r, half));
    }
  });
}

void exchange(const Turn& turn, Board& board, const std::vector<Array>& sent,
              const std::vector<Array>& received) {
  const int rank = board.place(), size = board.size();
  const auto flat = [](const Array& x) {
    return Flat(x.defined() ? std::vector{x} : std::vector<Array>{});
  };
  std::vector<Flat> ours, theirs;
  std::int64_t longest = 0;
  for (int r = 0; r < size; ++r) {
    longest = std::max(longest, ours.emplace_back(flat(sent[r])).bytes());
    theirs.push_back(flat(received[r]));
  }
  // Nobody knows what two others have for each other, but all have to meet as often.
  const int half = board.next_half();
  std::memcpy(board.segment(rank, half), &longest, sizeof(longest));
  board.meet(turn);
  for (int r = 0; r < size; ++r) {
    std::int64_t other = 0;
    std::memcpy(&other, board.segment(r, half), sizeof(other));
    longest = std::max(longest, other);
  }
  const std::int64_t piece = Board::kSegment / size / 64 * 64;
  in_pieces(longest, piece, [&](std::int64_t begin, std::int64_t length) {
    const auto clipped = [&](const Flat& x) {
      return std::clamp<std::int64_t>(x.bytes() - begin, 0, length);
    };
    const int at = board.next_half();
    for (int r = 0; r < size; ++r) {
      ours[r].read(begin, clipped(ours[r]), board.segment(rank, at) + r * piece);
    }
    board.meet(turn);
    for (int r = 0; r < size; ++r) {
      theirs[r].write(begin, clipped(theirs[r]), board.segment(r, at) + rank * piece);
    }
  });
}

void broadcast(const Turn& turn, Board& board, const Array& x, int root) {
  const Flat flat({x});
  in_pieces(flat.bytes(), Board::kSegment, [&](std::int64_t begin, std::int64_t length) {
    const int half = board.next_half();
    if (board.place() == root) flat.read(begin, length, board.segment(root, half));
    board.meet(turn);
    if (board.place() != root) flat.write(begin, length, board.segment(root, half));
  });
}

}  // namespace renga::by_board
