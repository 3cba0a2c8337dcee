#include "collectives/reduce.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "collectives/partition.h"

using namespace renga;

namespace {

// Reduces one element of each operand.
template <class T>
T reduced(ReduceOp reduction, const std::vector<T>& values) {
  std::vector<const std::byte*> xs;
  for (const T& value : values) xs.push_back(reinterpret_cast<const std::byte*>(&value));
  T y;
  reduce(reduction, dtype_of<T>, xs, reinterpret_cast<std::byte*>(&y), 1);
  return y;
}

}  // namespace

TEST_CASE("operands are combined in pairs of neighbours, along a binary tree") {
  const float tiny = 0x1p-24F;  // 1 + tiny is rounded to 1, 1 + 2 tiny is not
  CHECK(reduced<float>(ReduceOp::sum, {1, tiny, tiny}) == 1);             // (0 1) 2
  CHECK(reduced<float>(ReduceOp::sum, {tiny, tiny, 1}) > 1);              // (0 1) 2
  CHECK(reduced<float>(ReduceOp::sum, {1, tiny, tiny, tiny}) > 1);        // (0 1) (2 3)
  CHECK(reduced<float>(ReduceOp::sum, {1, tiny, tiny, 0, tiny}) == 1);    // ((0 1) 2) (3 4)
  CHECK(reduced<float>(ReduceOp::sum, {1, tiny, tiny, tiny, tiny}) > 1);  // ((0 1) 2) (3 4)
}

TEST_CASE("integers wrap around and NaN is propagated") {
  CHECK(reduced<std::int32_t>(ReduceOp::sum, {std::numeric_limits<std::int32_t>::max(), 1}) ==
        std::numeric_limits<std::int32_t>::min());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp reduction : {ReduceOp::max, ReduceOp::min}) {
    CHECK(std::isnan(reduced<float>(reduction, {nan, 1, 2})));
    CHECK(std::isnan(reduced<float>(reduction, {1, 2, nan})));
  }
}

TEST_CASE("a reduction in steps gives the same bits as one at once") {
  const std::vector<double> xs{0.1, 0.2, 0.3, 0.4};
  const auto bytes = [](const double& x) { return reinterpret_cast<const std::byte*>(&x); };
  const std::vector<const std::byte*> first{bytes(xs[0]), bytes(xs[1])};
  const std::vector<const std::byte*> second{bytes(xs[2]), bytes(xs[3])};
  double left = 0, right = 0, y = 0;
  const auto out = [](double& x) { return reinterpret_cast<std::byte*>(&x); };
  reduce_to_partial(ReduceOp::mean, Dtype::float64, first, out(left), 1);
  reduce_to_partial(ReduceOp::mean, Dtype::float64, second, out(right), 1);
  combine_partial(ReduceOp::mean, Dtype::float64, out(left), out(right), out(left), 1);
  finish_partial(ReduceOp::mean, Dtype::float64, 4, out(left), out(y), 1);
  CHECK(y == reduced<double>(ReduceOp::mean, xs));
}

TEST_CASE("partitions cover a vector in whole cache lines") {
  for (const std::int64_t bytes : {0, 4, 64, 1000, 4096}) {
    for (const int ranks : {1, 2, 3, 7}) {
      std::int64_t end = 0;
      for (int r = 0; r < ranks; ++r) {
        const Interval range = partition(bytes, r, ranks);
        CHECK(range.begin == end);
        CHECK((range.begin % 64 == 0 || range.begin == bytes));
        end = range.end;
      }
      CHECK(end == bytes);
    }
  }
  std::vector<Interval> chunks;
  for_each_chunk(10, 4, [&](std::int64_t begin, std::int64_t length) {
    chunks.push_back({begin, begin + length});
  });
  CHECK(chunks.size() == 3);
  CHECK(chunks[2].begin == 8);
  CHECK(chunks[2].length() == 2);
}
