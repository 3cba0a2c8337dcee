#include <vector>

#include "collectives/all_reduce/algorithms.h"

namespace renga::all_reduce {

namespace {

// The positions first, first + step, …, `count` of them, of which `position` is this rank's.
RankGroup subgroup(const RankGroup& group, int first, int step, int count, int position) {
  std::vector<int> ranks;
  for (int i = 0; i < count; ++i) {
    ranks.push_back(group.ranks[static_cast<std::size_t>(first + i * step)]);
  }
  return {group.context, std::move(ranks), position};
}

}  // namespace

void torus(const RankGroup& group, const Vector& v, int width) {
  const int row = group.position / width, column = group.position % width;
  const RankGroup row_ranks = subgroup(group, row * width, 1, width, column);
  const RankGroup column_ranks = subgroup(group, column, width, group.size() / width, row);

  const auto partition_of = [&](int r) { return v.partition_of(r, width); };
  const auto own = partition_of(column);
  const std::int64_t n = std::ssize(own) / size_of(v.dtype);
  const Buffer others = make_buffer(group.context, width * std::ssize(own));
  const auto operand = [&](int r) {
    return r == column ? own : byte_span(others.get() + r * std::ssize(own), std::ssize(own));
  };
  send_receive_all(row_ranks, partition_of, operand);
  std::vector<const std::byte*> xs;
  for (int r = 0; r < width; ++r) xs.push_back(operand(r).data());
  reduce_to_partial(v.reduction, v.dtype, xs, own.data(), n);
  rabenseifner(column_ranks, {own.data(), n, v.dtype, v.reduction});
  send_receive_all(
      row_ranks, [&](int) { return own; }, partition_of);
}

}  // namespace renga::all_reduce
