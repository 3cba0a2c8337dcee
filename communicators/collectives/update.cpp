#include "collectives/update.h"

#include <cstring>
#include <span>

#include "collectives/reduce.h"
#include "collectives/shares.h"
#include "tensor/streaming.cpu.h"

namespace renga::by_board {

namespace {

// What of an array is averaged, changed and written before the next is: it stays in the cache.
constexpr std::int64_t kBlock = std::int64_t{1} << 16;

// The same stretch of bytes of an array without gaps.
Array part(const Array& x, std::int64_t begin, std::int64_t length) {
  return {x.storage(), x.data() + begin, Shape{length / x.itemsize()}, Strides{x.itemsize()},
          x.dtype()};
}

void update_block(const Update& update, const std::vector<Array>& arrays,
                  std::span<const Peers> peers, int place, std::int64_t begin,
                  std::int64_t length) {
  std::vector<Array> parts;
  for (const Array& x : arrays) parts.push_back(part(x, begin, length));
  const Array &g = parts[0], &x = parts[1];
  Peers grads = peers[0];
  for (std::byte*& grad : grads) grad += begin;
  reduce(Reduction::mean, g.dtype(), Operands(grads), g.data(), g.size());
  update.apply(x, {g, update.g.decay}, parts.data() + 2);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    for (std::size_t r = 0; r < peers[k].size(); ++r) {
      // Others will not look at it before all is done, and the caches have other work.
      if (static_cast<int>(r) != place) stream(parts[k].data(), peers[k][r] + begin, length);
    }
  }
}

}  // namespace

std::vector<Array> arrays_of(const Update& update) {
  std::vector<Array> arrays{update.g.array, update.x};
  arrays.insert(arrays.end(), update.states.begin(), update.states.end());
  return arrays;
}

void update(const Turn& turn, Board& board, const std::vector<Update>& updates,
            const std::vector<Peers>& peers) {
  board.meet(turn);  // all gradients are complete
  std::size_t first = 0;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const std::vector<Array> arrays = arrays_of(updates[i]);
    // The shares of short arrays fall to each rank in turn.
    const int place = (board.place() + static_cast<int>(i)) % board.size();
    const Stretch own = share(arrays[0].size() * arrays[0].itemsize(), place, board.size());
    in_pieces(own.length(), kBlock, [&](std::int64_t begin, std::int64_t length) {
      update_block(updates[i], arrays, std::span(peers).subspan(first, arrays.size()),
                   board.place(), own.begin + begin, length);
    });
    first += arrays.size();
  }
  finish_streaming();
  board.meet(turn);  // all results are there
}

}  // namespace renga::by_board
