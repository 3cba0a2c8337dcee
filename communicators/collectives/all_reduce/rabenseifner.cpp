#include <vector>

#include "collectives/all_reduce/power_of_two.h"

namespace renga::all_reduce {

namespace {

struct Halves {
  Interval own;      // reduced further by this rank
  Interval partner;  // and by its partner
};

// In elements. The lower of two partners takes the lower half.
Halves halve(Interval range, bool is_lower) {
  const std::int64_t middle = range.begin + range.length() / 2;
  const Interval lower{range.begin, middle}, upper{middle, range.end};
  return is_lower ? Halves{lower, upper} : Halves{upper, lower};
}

}  // namespace

void rabenseifner(const RankGroup& group, const Vector& v) {
  const std::int64_t itemsize = size_of(v.dtype);
  const auto bytes_of = [&](std::byte* data, Interval elements) {
    return byte_span(data + elements.begin * itemsize, elements.length() * itemsize);
  };
  with_power_of_two(group, v, [&](const PowerOfTwo& participants, int index, std::byte* scratch) {
    // Nearest partners first: this keeps the order of the operands.
    std::vector<Halves> steps;
    Interval own{0, v.n};
    for (int distance = 1; distance < participants.size; distance *= 2) {
      const int partner = participants.position_of(index ^ distance);
      const bool is_lower = (index & distance) == 0;
      const Halves& halves = steps.emplace_back(halve(own, is_lower));
      own = halves.own;
      send_receive(group, bytes_of(v.x, halves.partner), partner, bytes_of(scratch, own), partner);
      combine_in_order(v, scratch + own.begin * itemsize, own.begin, own.length(), is_lower);
    }
    for (int distance = participants.size / 2; distance > 0; distance /= 2) {
      const int partner = participants.position_of(index ^ distance);
      const Halves halves = steps.back();
      steps.pop_back();
      send_receive(group, bytes_of(v.x, halves.own), partner, bytes_of(v.x, halves.partner),
                   partner);
    }
  });
}

}  // namespace renga::all_reduce
