#include "collectives/overlap.h"

#include <algorithm>

namespace renga {

namespace {

struct AddressRange {
  const std::byte* begin;
  const std::byte* end;
};

AddressRange range_of(const Array& x) {
  AddressRange range{x.data(), x.data() + x.itemsize()};
  for (int axis = 0; axis < x.ndim(); ++axis) {
    const std::int64_t extent = (x.shape(axis) - 1) * x.strides()[axis];
    (extent < 0 ? range.begin : range.end) += extent;
  }
  return range;
}

// Sorted by their beginnings, without empty ones.
std::vector<AddressRange> ranges_of(const std::vector<Array>& xs) {
  std::vector<AddressRange> ranges;
  for (const Array& x : xs) {
    if (x.defined() && x.size() > 0) ranges.push_back(range_of(x));
  }
  std::ranges::sort(ranges, {}, &AddressRange::begin);
  return ranges;
}

bool any_overlap(const std::vector<AddressRange>& sorted) {
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].begin < sorted[i - 1].end) return true;
  }
  return false;
}

bool is_identical(const Array& x, const Array& y) {
  return x.data() == y.data() && x.shape() == y.shape() && x.strides() == y.strides();
}

}  // namespace

bool overlap(const std::vector<Array>& xs) { return any_overlap(ranges_of(xs)); }

std::vector<Array> safe_inputs(const std::vector<Array>& xs, const std::vector<Array>& ys,
                               int own) {
  const std::vector<AddressRange> written = ranges_of(ys);
  const bool results_overlap = any_overlap(written);
  std::vector<Array> result;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const Array& x = xs[i];
    bool safe = !x.defined() || x.size() == 0;
    if (!safe && !results_overlap) {
      const AddressRange range = range_of(x);
      const auto next = std::ranges::upper_bound(written, range.begin, {}, &AddressRange::end);
      safe = next == written.end() || next->begin >= range.end ||
             is_identical(x, ys[own < 0 ? i : static_cast<std::size_t>(own)]);
    }
    result.push_back(safe ? x : copy_of(x));
  }
  return result;
}

}  // namespace renga
