#include "collectives/all_reduce/algorithms.h"

namespace renga::all_reduce {

void ring(const RankGroup& group, const Vector& v) {
  const int size = group.size();
  const int right = (group.position + 1) % size, left = (group.position - 1 + size) % size;
  const auto partition_at = [&](int i) { return v.partition_of((i + 2 * size) % size, size); };
  const Buffer scratch = make_buffer(group.context, std::ssize(partition_at(0)));
  for (int step = 0; step < size - 1; ++step) {
    const auto own = partition_at(group.position - step - 1);
    const auto received = byte_span(scratch.get(), std::ssize(own));
    send_receive(group, partition_at(group.position - step), right, received, left);
    combine_partial(v.reduction, v.dtype, received.data(), own.data(), own.data(),
                    std::ssize(own) / size_of(v.dtype));
  }
  for (int step = 0; step < size - 1; ++step) {
    send_receive(group, partition_at(group.position + 1 - step), right,
                 partition_at(group.position - step), left);
  }
}

}  // namespace renga::all_reduce
