#include "collectives/all_reduce/power_of_two.h"

namespace renga::all_reduce {

void tree(const RankGroup& group, const Vector& v) {
  const auto vector = byte_span(v.x, v.bytes());
  with_power_of_two(group, v, [&](const PowerOfTwo& participants, int index, std::byte* scratch) {
    const auto position_of = [&](int other) { return participants.position_of(other); };
    int distance = 1;
    for (; distance < participants.size && (index & distance) == 0; distance *= 2) {
      receive(group, byte_span(scratch, v.bytes()), position_of(index + distance));
      combine_in_order(v, scratch, 0, v.n, true);
    }
    if (index > 0) {
      send(group, vector, position_of(index - distance));
      receive(group, vector, position_of(index - distance));
    }
    Transfers transfers;
    for (distance /= 2; distance > 0; distance /= 2) {
      post_send(transfers, group, vector, position_of(index + distance));
    }
    wait_all_or_cancel(transfers, group.context);
  });
}

}  // namespace renga::all_reduce
