#include <vector>

#include "collectives/all_reduce/fold.h"
#include "collectives/shares.h"

namespace renga::all_reduce {

namespace {

struct Halves {
  Stretch kept;
  Stretch given;
};

// In elements; the lower of two partners keeps the lower half.
Halves halve(Stretch whole, bool lower) {
  const std::int64_t middle = whole.begin + whole.length() / 2;
  const Stretch first{whole.begin, middle}, second{middle, whole.end};
  return lower ? Halves{first, second} : Halves{second, first};
}

}  // namespace

void rabenseifner(const Group& group, const Vector& v) {
  const std::int64_t size = size_of(v.dtype);
  const auto part = [&](std::byte* data, Stretch elements) {
    return bytes_at(data + elements.begin * size, elements.length() * size);
  };
  folded(group, v, [&](const Fold& fold, int node, std::byte* room) {
    // Nearest partners first, which keeps the order of the operands.
    std::vector<Halves> steps;
    Stretch mine{0, v.n};
    for (int distance = 1; distance < fold.nodes; distance *= 2) {
      const int partner = fold.place_of(node ^ distance);
      const bool lower = (node & distance) == 0;
      const Halves& halves = steps.emplace_back(halve(mine, lower));
      mine = halves.kept;
      swap(group, part(v.x, halves.given), partner, part(room, mine), partner);
      join_ordered(v, room + mine.begin * size, mine.begin, mine.length(), lower);
    }
    for (int distance = fold.nodes / 2; distance > 0; distance /= 2) {
      const int partner = fold.place_of(node ^ distance);
      const Halves halves = steps.back();
      steps.pop_back();
      swap(group, part(v.x, halves.kept), partner, part(v.x, halves.given), partner);
    }
  });
}

}  // namespace renga::all_reduce
