#include "collectives/all_reduce/fold.h"

namespace renga::all_reduce {

void tree(const Group& group, const Vector& v) {
  const auto all = bytes_at(v.x, v.bytes());
  folded(group, v, [&](const Fold& fold, int node, std::byte* room) {
    int distance = 1;
    for (; distance < fold.nodes && (node & distance) == 0; distance *= 2) {
      receive(group, bytes_at(room, v.bytes()), fold.place_of(node + distance));
      join_ordered(v, room, 0, v.n, true);
    }
    if (node > 0) {
      send(group, all, fold.place_of(node - distance));
      receive(group, all, fold.place_of(node - distance));
    }
    Transfers transfers;
    for (distance /= 2; distance > 0; distance /= 2) {
      post_send(transfers, group, all, fold.place_of(node + distance));
    }
    finish(transfers, group.turn);
  });
}

}  // namespace renga::all_reduce
