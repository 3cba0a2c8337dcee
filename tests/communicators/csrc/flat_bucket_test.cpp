#include "collectives/flat_bucket.h"

#include <doctest/doctest.h>

#include <cstring>

#include "tensor/views.h"

using namespace renga;

namespace {

using Values = std::vector<float>;

Array counted(const Shape& shape, float first = 0) {
  const Array x = empty(shape, Dtype::float32);
  for (std::int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = first + static_cast<float>(i);
  return x;
}

// `count` elements from `first` on.
Values read(const FlatBucket& bucket, std::int64_t first, std::int64_t count) {
  Values values(static_cast<std::size_t>(count));
  bucket.read(4 * first, 4 * count, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

}  // namespace

TEST_CASE("a bucket reads its arrays one after another in row-major order") {
  const Array transposed = transpose_view(counted({2, 3}), {1, 0});
  const Array nothing = counted({0}), last = counted({2}, 10);
  const FlatBucket bucket({transposed, nothing, last});
  CHECK(bucket.bytes() == 32);
  CHECK(read(bucket, 0, 8) == Values{0, 3, 1, 4, 2, 5, 10, 11});
  CHECK(read(bucket, 3, 4) == Values{4, 2, 5, 10});
  CHECK(read(bucket, 8, 0).empty());
}

TEST_CASE("a bucket writes into arrays of any strides") {
  const Array x = counted({2, 4}), y = counted({3});
  const FlatBucket bucket({slice_view(x, 1, 0, 2, 2), y});
  const Values values{7, 8, 9};
  bucket.write(4 * 2, 12, reinterpret_cast<const std::byte*>(values.data()));
  CHECK(Values(x.as<float>(), x.as<float>() + 8) == Values{0, 1, 2, 3, 7, 5, 8, 7});
  CHECK(Values(y.as<float>(), y.as<float>() + 3) == Values{9, 1, 2});
}

TEST_CASE("elements are converted to the communication dtype and back") {
  const Array x = full({3}, 1.0 + 0x1p-12, Dtype::float32);
  const FlatBucket bucket({x}, Dtype::float16);
  CHECK(bucket.bytes() == 6);
  std::uint16_t half[3];
  bucket.read(0, 6, reinterpret_cast<std::byte*>(half));
  CHECK(half[0] == 0x3c00);  // 1 in float16
  bucket.write(2, 2, reinterpret_cast<const std::byte*>(half));
  CHECK(x.as<float>()[0] == 1.0F + 0x1p-12F);
  CHECK(x.as<float>()[1] == 1.0F);
}

TEST_CASE("a range is contiguous if it is in one run of memory and not converted") {
  const Array x = counted({4}), columns = transpose_view(counted({3, 2}), {1, 0});
  CHECK(FlatBucket({x}).contiguous_range(4, 8) == x.data() + 4);
  CHECK(FlatBucket({x, x}).contiguous_range(8, 16) == nullptr);
  CHECK(FlatBucket({columns}).contiguous_range(0, 8) == nullptr);
  CHECK(FlatBucket({x}, Dtype::float16).contiguous_range(0, 4) == nullptr);
}

TEST_CASE("runs of a cache line or more are long") {
  CHECK(FlatBucket::has_long_runs(counted({3})));
  CHECK(FlatBucket::has_long_runs(slice_view(counted({4, 32}), 1, 0, 16, 1)));
  CHECK(!FlatBucket::has_long_runs(slice_view(counted({4, 32}), 1, 0, 15, 1)));
  CHECK(!FlatBucket::has_long_runs(transpose_view(counted({32, 4}), {1, 0})));
}
