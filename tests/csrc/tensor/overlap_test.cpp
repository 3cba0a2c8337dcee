#include "tensor/overlap.h"

#include <doctest/doctest.h>

#include "tensor/views.h"

namespace renga {

TEST_CASE("memory ranges overlap where an element lies between the ends of another array") {
  const Array block = zeros({10}, Dtype::float32);
  const Array first = slice_view(block, 0, 0, 5), last = slice_view(block, 0, 5, 5);
  const Array reversed = slice_view(block, 0, 9, 5, -1), middle = slice_view(block, 0, 4, 2);
  CHECK(!MemoryRanges({first, last}).overlap());
  CHECK(!MemoryRanges({first, reversed}).overlap());
  CHECK(MemoryRanges({last, reversed}).overlap());
  CHECK(MemoryRanges({last, first, middle}).overlap());
  CHECK(MemoryRanges({first, last}).overlap(middle));
  CHECK(!MemoryRanges({first}).overlap(reversed));
  CHECK(!MemoryRanges({last}).overlap(first));
}

TEST_CASE("gaps belong to a memory range, and empty arrays have none") {
  const Array block = zeros({10}, Dtype::float32);
  const Array even = slice_view(block, 0, 0, 5, 2), odd = slice_view(block, 0, 1, 5, 2);
  const Array empty = slice_view(block, 0, 3, 0);
  CHECK(MemoryRanges({even, odd}).overlap());
  CHECK(!MemoryRanges({block, empty, Array()}).overlap());
  CHECK(!MemoryRanges({block}).overlap(empty));
  CHECK(!MemoryRanges({block}).overlap(Array()));
}

}  // namespace renga
