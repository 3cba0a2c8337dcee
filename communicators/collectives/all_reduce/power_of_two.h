// Runs algorithms for powers of two on groups of any size: the ranks in excess send their operand
// to a neighbour first, wait, and receive the result at the end.
#pragma once

#include <bit>

#include "collectives/all_reduce/algorithms.h"

namespace renga::all_reduce {

// Maps the `size` participants, a power of two, to positions in a group.
struct PowerOfTwo {
  explicit PowerOfTwo(const RankGroup& group)
      : size(static_cast<int>(std::bit_floor(static_cast<unsigned>(group.size())))),
        pairs(group.size() - size) {}

  int size;
  int pairs;  // positions 2i and 2i + 1 together are participant i < pairs

  int position_of(int participant) const {
    return participant < pairs ? 2 * participant : participant + pairs;
  }
  int participant_of(int position) const {
    return position < 2 * pairs ? position / 2 : position - pairs;
  }
  bool is_excess(int position) const { return position < 2 * pairs && position % 2 == 1; }
};

// x[begin : begin + n] = x op other, or other op x, depending on which operand comes first.
inline void combine_in_order(const Vector& v, const std::byte* other, std::int64_t begin,
                             std::int64_t n, bool own_first) {
  std::byte* own = v.x + begin * size_of(v.dtype);
  combine_partial(v.reduction, v.dtype, own_first ? own : other, own_first ? other : own, own, n);
}

// Calls run(participants, index of this one, scratch for a vector) on the participating ranks.
template <class Run>
void with_power_of_two(const RankGroup& group, const Vector& v, const Run& run) {
  const PowerOfTwo participants(group);
  const auto vector = byte_span(v.x, v.bytes());
  const bool paired = group.position < 2 * participants.pairs;
  if (participants.is_excess(group.position)) {
    send(group, vector, group.position - 1);
    receive(group, vector, group.position - 1);
    return;
  }
  const Buffer scratch = make_buffer(group.context, v.bytes());
  if (paired) {
    receive(group, byte_span(scratch.get(), v.bytes()), group.position + 1);
    combine_in_order(v, scratch.get(), 0, v.n, true);
  }
  run(participants, participants.participant_of(group.position), scratch.get());
  if (paired) send(group, vector, group.position + 1);
}

}  // namespace renga::all_reduce
