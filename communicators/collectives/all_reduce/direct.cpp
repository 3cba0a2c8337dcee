#include <vector>

#include "collectives/all_reduce/algorithms.h"
#include "collectives/shares.h"

namespace renga::all_reduce {

void whole(const Group& group, const Vector& v) {
  const std::int64_t bytes = v.bytes();
  const Buffer theirs = buffer(group.size() * bytes);
  swap_with_all(
      group, [&](int) { return bytes_at(v.x, bytes); },
      [&](int from) { return bytes_at(theirs.get() + from * bytes, bytes); });
  std::vector<const std::byte*> xs;
  for (int r = 0; r < group.size(); ++r) {
    xs.push_back(r == group.place ? v.x : theirs.get() + r * bytes);
  }
  reduce(v.reduction, v.dtype, xs, v.x, v.n);
}

void direct(const Group& group, const Vector& v) {
  const auto share_of = [&](int r) { return share(v.bytes(), r, group.size()); };
  const auto part = [&](int r) { return bytes_at(v.x + share_of(r).begin, share_of(r).length()); };
  const std::int64_t own = share_of(group.place).length();
  std::byte* mine = v.x + share_of(group.place).begin;
  const Buffer theirs = buffer(group.size() * own);
  swap_with_all(group, part, [&](int from) { return bytes_at(theirs.get() + from * own, own); });
  std::vector<const std::byte*> xs;
  for (int r = 0; r < group.size(); ++r) {
    xs.push_back(r == group.place ? mine : theirs.get() + r * own);
  }
  reduce(v.reduction, v.dtype, xs, mine, own / size_of(v.dtype));
  swap_with_all(
      group, [&](int) { return bytes_at(mine, own); }, part);
}

}  // namespace renga::all_reduce
