#include "tensor/overlap.h"

#include <algorithm>

namespace renga {

MemoryRanges::MemoryRanges(const std::vector<Array>& xs) {
  for (const Array& x : xs) {
    if (x.defined() && x.size() > 0) ranges_.push_back(range_of(x));
  }
  std::ranges::sort(ranges_, {}, &Range::begin);
}

bool MemoryRanges::overlap() const {
  for (std::size_t i = 1; i < ranges_.size(); ++i) {
    if (ranges_[i].begin < ranges_[i - 1].end) return true;
  }
  return false;
}

bool MemoryRanges::overlap(const Array& x) const {
  if (!x.defined() || x.size() == 0) return false;
  const Range range = range_of(x);
  const auto next = std::ranges::upper_bound(ranges_, range.begin, {}, &Range::end);
  return next != ranges_.end() && next->begin < range.end;
}

MemoryRanges::Range MemoryRanges::range_of(const Array& x) {
  Range range{x.data(), x.data() + x.itemsize()};
  for (int axis = 0; axis < x.ndim(); ++axis) {
    const std::int64_t extent = (x.shape(axis) - 1) * x.strides()[axis];
    (extent < 0 ? range.begin : range.end) += extent;
  }
  return range;
}

}  // namespace renga
