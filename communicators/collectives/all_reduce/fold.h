// Algorithms for powers of two on groups of any size: the places that are left over hand their
// operand to a neighbour, sit out, and get the result back.
#pragma once

#include <bit>

#include "collectives/all_reduce/algorithms.h"

namespace renga::all_reduce {

// The places of a group of which a power of two, the nodes, take part.
struct Fold {
  explicit Fold(const Group& group)
      : nodes(static_cast<int>(std::bit_floor(static_cast<unsigned>(group.size())))),
        pairs(group.size() - nodes) {}

  int nodes;
  int pairs;  // places 2i and 2i + 1 make node i < pairs

  int place_of(int node) const { return node < pairs ? 2 * node : node + pairs; }
  int node_of(int place) const { return place < 2 * pairs ? place / 2 : place - pairs; }
  bool sits_out(int place) const { return place < 2 * pairs && place % 2 == 1; }
};

// x = x op theirs, or theirs op x, as the order of the operands is.
inline void join_ordered(const Vector& v, const std::byte* theirs, std::int64_t begin,
                         std::int64_t n, bool mine_first) {
  std::byte* mine = v.x + begin * size_of(v.dtype);
  join_partial(v.reduction, v.dtype, mine_first ? mine : theirs, mine_first ? theirs : mine, mine,
               n);
}

// Calls among_nodes(fold, node, room for a vector) on the places that are nodes.
template <class AmongNodes>
void folded(const Group& group, const Vector& v, const AmongNodes& among_nodes) {
  const Fold fold(group);
  const auto all = bytes_at(v.x, v.bytes());
  const bool paired = group.place < 2 * fold.pairs;
  if (fold.sits_out(group.place)) {
    send(group, all, group.place - 1);
    receive(group, all, group.place - 1);
    return;
  }
  const Buffer room = buffer(v.bytes());
  if (paired) {
    receive(group, bytes_at(room.get(), v.bytes()), group.place + 1);
    join_ordered(v, room.get(), 0, v.n, true);
  }
  among_nodes(fold, fold.node_of(group.place), room.get());
  if (paired) send(group, all, group.place + 1);
}

}  // namespace renga::all_reduce
