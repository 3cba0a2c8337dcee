// Detects arrays that share memory.
#pragma once

#include <vector>

#include "tensor/array.h"

namespace renga {

// The memory ranges of arrays, each from the first to the last element, gaps included.
class MemoryRanges {
 public:
  explicit MemoryRanges(const std::vector<Array>& xs);

  // Whether two of the ranges overlap.
  bool overlap() const;
  // Whether one of the ranges overlaps that of x. The ranges must not overlap each other.
  bool overlap(const Array& x) const;

 private:
  struct Range {
    const std::byte* begin;
    const std::byte* end;
  };
  static Range range_of(const Array& x);

  std::vector<Range> ranges_;  // sorted by their beginnings, without empty ones
};

}  // namespace renga
