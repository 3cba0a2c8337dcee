#include "tensor/extents.h"

#include <doctest/doctest.h>

#include <limits>

#include "devices/allocator.h"
#include "ops/shape/window.h"
#include "tensor/array.h"

namespace renga {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t k32 = std::int64_t{1} << 32;

TEST_CASE("sums and products stop at the largest number") {
  CHECK(saturated_sum(2, 3) == 5);
  CHECK(saturated_sum(kMost, 1) == kMost);
  CHECK(saturated_product(k32, 5) == 5 * k32);
  CHECK(saturated_product(k32, k32) == kMost);
}

TEST_CASE("bytes of a shape are counted without overflow") {
  CHECK(checked_bytes("op", {2, 3}, Dtype::float32) == 24);
  CHECK(checked_bytes("op", {}, Dtype::float64) == 8);
  CHECK(checked_bytes("op", {0, k32}, Dtype::float32) == 0);
  CHECK_THROWS_AS(checked_bytes("op", {2, -3}, Dtype::float32), std::invalid_argument);
  CHECK_THROWS_AS(checked_bytes("op", {0, -3}, Dtype::float32), std::invalid_argument);
  CHECK_THROWS_AS(checked_bytes("op", {k32, k32}, Dtype::bool_), OutOfMemory);
  // The strides would overflow.
  CHECK_THROWS_AS(checked_bytes("op", {0, k32, k32}, Dtype::bool_), OutOfMemory);
}

TEST_CASE("an array larger than the memory is refused before it is reserved") {
  const std::int64_t before = memory_stats(Device{}).allocations;
  CHECK_THROWS_AS(empty({std::int64_t{1} << 50}, Dtype::float32), OutOfMemory);
  CHECK_THROWS_AS(require_memory("op", {std::int64_t{1} << 50}, Dtype::bool_), OutOfMemory);
  CHECK(memory_stats(Device{}).allocations == before);
  CHECK(require_memory("op", {1024}, Dtype::float32) == 4096);
}

TEST_CASE("options of windows are positive and below 2^31") {
  const std::int64_t end = std::int64_t{1} << 31;
  CHECK_NOTHROW(check_window("op", 2, {1, end - 1}, {0, end - 1}, {1, end - 1}));
  CHECK_THROWS_AS(check_window("op", 2, {1, 0}, {0, 0}, {1, 1}), std::invalid_argument);
  CHECK_THROWS_AS(check_window("op", 2, {1, 1}, {0, -1}, {1, 1}), std::invalid_argument);
  CHECK_THROWS_AS(check_window("op", 2, {1, 1}, {0, end}, {1, 1}), std::invalid_argument);
  CHECK_THROWS_AS(check_window("op", 2, {1, 1}, {0, 0}, {1, kMost}), std::invalid_argument);
  CHECK_THROWS_AS(check_window("op", 2, {1}, {0, 0}, {1, 1}), std::invalid_argument);
}

TEST_CASE("a transposed convolution's extent does not wrap") {
  const Window window{{k32 / 2 - 1}, {0}, {1}, 1};
  CHECK(window.transposed_extent(3, 2, 0) == 2 * (k32 / 2 - 1) + 2);
  CHECK(window.transposed_extent(kMost / 4, 2, 0) == kMost);
}

}  // namespace
}  // namespace renga
