// Collectives through a board, piece by piece: for ranks that share memory.
#pragma once

#include <vector>

#include "collectives/board.h"
#include "collectives/flat.h"
#include "collectives/reduce.h"
#include "collectives/window.h"

namespace renga::by_board {

// Up to here every rank reduces all of it, which costs less than a second meeting.
inline constexpr std::int64_t kSmall = std::int64_t{1} << 14;

// Of at most kSmall bytes without gaps, in place.
void all_reduce_short(const Turn& turn, Board& board, std::byte* x, std::int64_t bytes, Dtype dtype,
                      Reduction reduction);

// Every rank reduces its own share of each piece in rank order.
void all_reduce(const Turn& turn, Board& board, const Flat& x, const Flat& y, Dtype dtype,
                Reduction reduction);

// The same in place for arrays that every rank reads and writes where they are, without a copy.
void all_reduce(const Turn& turn, Board& board, const std::vector<Array>& xs,
                const std::vector<Peers>& peers, Reduction reduction);

// `x` holds one block per rank; `y` receives the reduction of this rank's blocks.
void reduce_scatter(const Turn& turn, Board& board, const Flat& x, const Flat& y, Dtype dtype,
                    Reduction reduction);

// Every rank's `x`; ys[r] is as large as rank r's.
void all_gather(const Turn& turn, Board& board, const Array& x, const std::vector<Array>& ys);

// received[r] gets what rank r sends to this one. Undefined arrays are nothing.
void exchange(const Turn& turn, Board& board, const std::vector<Array>& sent,
              const std::vector<Array>& received);

// The root's `x` into everybody's.
void broadcast(const Turn& turn, Board& board, const Array& x, int root);

}  // namespace renga::by_board
