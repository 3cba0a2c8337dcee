#include "collectives/overlap.h"

#include <algorithm>

namespace renga {

namespace {

struct Range {
  const std::byte* begin;
  const std::byte* end;
};

Range range_of(const Array& x) {
  Range range{x.data(), x.data() + x.itemsize()};
  for (int axis = 0; axis < x.ndim(); ++axis) {
    const std::int64_t reach = (x.shape(axis) - 1) * x.strides()[axis];
    (reach < 0 ? range.begin : range.end) += reach;
  }
  return range;
}

// In the order in which they begin, without empty ones.
std::vector<Range> ranges_of(const std::vector<Array>& xs) {
  std::vector<Range> ranges;
  for (const Array& x : xs) {
    if (x.defined() && x.size() > 0) ranges.push_back(range_of(x));
  }
  std::ranges::sort(ranges, {}, &Range::begin);
  return ranges;
}

bool meet(const std::vector<Range>& sorted) {
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].begin < sorted[i - 1].end) return true;
  }
  return false;
}

bool is_same(const Array& x, const Array& y) {
  return x.data() == y.data() && x.shape() == y.shape() && x.strides() == y.strides();
}

}  // namespace

bool overlap(const std::vector<Array>& xs) { return meet(ranges_of(xs)); }

std::vector<Array> safe_inputs(const std::vector<Array>& xs, const std::vector<Array>& ys,
                               int own) {
  const std::vector<Range> written = ranges_of(ys);
  const bool tangled = meet(written);
  std::vector<Array> result;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const Array& x = xs[i];
    bool safe = !x.defined() || x.size() == 0;
    if (!safe && !tangled) {
      const Range range = range_of(x);
      const auto next = std::ranges::upper_bound(written, range.begin, {}, &Range::end);
      safe = next == written.end() || next->begin >= range.end ||
             is_same(x, ys[own < 0 ? i : static_cast<std::size_t>(own)]);
    }
    result.push_back(safe ? x : copy_of(x));
  }
  return result;
}

}  // namespace renga
