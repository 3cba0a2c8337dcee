#include "collectives/all_reduce/algorithms.h"
#include "collectives/shares.h"

namespace renga::all_reduce {

void ring(const Group& group, const Vector& v) {
  const int size = group.size();
  const int right = (group.place + 1) % size, left = (group.place - 1 + size) % size;
  const auto share_of = [&](int r) { return share(v.bytes(), (r + 2 * size) % size, size); };
  const auto part = [&](int r) { return bytes_at(v.x + share_of(r).begin, share_of(r).length()); };
  const Buffer room = buffer(share_of(0).length());
  for (int step = 0; step < size - 1; ++step) {
    const auto kept = part(group.place - step - 1);
    swap(group, part(group.place - step), right, bytes_at(room.get(), std::ssize(kept)), left);
    join_partial(v.reduction, v.dtype, room.get(), kept.data(), kept.data(),
                 std::ssize(kept) / size_of(v.dtype));
  }
  for (int step = 0; step < size - 1; ++step) {
    swap(group, part(group.place + 1 - step), right, part(group.place - step), left);
  }
}

}  // namespace renga::all_reduce
