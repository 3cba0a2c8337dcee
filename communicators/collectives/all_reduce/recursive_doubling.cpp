#include "collectives/all_reduce/power_of_two.h"

namespace renga::all_reduce {

void recursive_doubling(const RankGroup& group, const Vector& v) {
  with_power_of_two(group, v, [&](const PowerOfTwo& participants, int index, std::byte* scratch) {
    const auto sent = byte_span(v.x, v.bytes()), received = byte_span(scratch, v.bytes());
    for (int distance = 1; distance < participants.size; distance *= 2) {
      const int partner = participants.position_of(index ^ distance);
      send_receive(group, sent, partner, received, partner);
      combine_in_order(v, scratch, 0, v.n, (index & distance) == 0);
    }
  });
}

}  // namespace renga::all_reduce
