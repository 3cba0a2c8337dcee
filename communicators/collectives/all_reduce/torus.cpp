#include <vector>

#include "collectives/all_reduce/algorithms.h"
#include "collectives/shares.h"

namespace renga::all_reduce {

void torus(const Group& group, const Vector& v, int width) {
  const int row_start = group.place / width * width, column_place = group.place % width;
  const auto some = [&](int first, int step, int count, int place) {
    std::vector<int> ranks;
    for (int i = 0; i < count; ++i) {
      ranks.push_back(group.ranks[static_cast<std::size_t>(first + i * step)]);
    }
    return Group{group.turn, std::move(ranks), place};
  };
  const Group row = some(row_start, 1, width, column_place);
  const Group column = some(column_place, width, group.size() / width, group.place / width);

  const auto share_of = [&](int r) { return share(v.bytes(), r, width); };
  const auto part = [&](int r) { return bytes_at(v.x + share_of(r).begin, share_of(r).length()); };
  const auto mine = part(row.place);
  const std::int64_t n = std::ssize(mine) / size_of(v.dtype);
  const Buffer theirs = buffer(width * std::ssize(mine));
  const auto place = [&](int from) {
    return bytes_at(theirs.get() + from * std::ssize(mine), std::ssize(mine));
  };
  swap_with_all(row, part, place);
  std::vector<const std::byte*> xs;
  for (int r = 0; r < width; ++r) xs.push_back(r == row.place ? mine.data() : place(r).data());
  begin_partial(v.reduction, v.dtype, xs, mine.data(), n);
  rabenseifner(column, {mine.data(), n, v.dtype, v.reduction});
  swap_with_all(
      row, [&](int) { return mine; }, part);
}

}  // namespace renga::all_reduce
