#include "collectives/all_reduce/fold.h"

namespace renga::all_reduce {

void recursive_doubling(const Group& group, const Vector& v) {
  folded(group, v, [&](const Fold& fold, int node, std::byte* room) {
    for (int distance = 1; distance < fold.nodes; distance *= 2) {
      const int partner = fold.place_of(node ^ distance);
      swap(group, bytes_at(v.x, v.bytes()), partner, bytes_at(room, v.bytes()), partner);
      join_ordered(v, room, 0, v.n, (node & distance) == 0);
    }
  });
}

}  // namespace renga::all_reduce
