#include "tensor/array.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "devices/allocator.h"
#include "tensor/views.h"

using namespace renga;

namespace {

Array counted(const Shape& shape, Dtype dtype = Dtype::int64) {
  Array flat = empty({shape.product()}, Dtype::int64);
  for (std::int64_t i = 0; i < flat.size(); ++i) flat.as<std::int64_t>()[i] = i;
  return cast(reshape_view(flat, shape), dtype);
}

std::vector<std::int64_t> integers(const Array& x) {
  const Array flat = contiguous(cast(x, Dtype::int64));
  return {flat.as<std::int64_t>(), flat.as<std::int64_t>() + flat.size()};
}

using Values = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("views show the same memory in other orders") {
  const Array x = counted({2, 3});
  CHECK(integers(transpose_view(x, {1, 0})) == Values{0, 3, 1, 4, 2, 5});
  CHECK(integers(slice_view(x, 1, 2, 3, -1)) == Values{2, 1, 0, 5, 4, 3});
  CHECK(integers(slice_view(x, 1, 0, 2, 2)) == Values{0, 2, 3, 5});
  CHECK(integers(select_view(x, 0, 1)) == Values{3, 4, 5});
  CHECK(integers(broadcast_view("test", select_view(x, 0, 1), {2, 3})) == Values{3, 4, 5, 3, 4, 5});
  CHECK(expand_view(x, 1).shape() == Shape{2, 1, 3});
}

TEST_CASE("a reshape is a view where strides allow it and undefined where not") {
  const Array x = counted({2, 3, 4});
  CHECK(integers(reshape_view(x, {6, 4})) == integers(x));
  const Array rows = slice_view(x, 2, 0, 4, 1);
  CHECK(reshape_view(rows, {6, 2, 2}).data() == x.data());
  const Array columns = slice_view(x, 2, 1, 2);
  CHECK(reshape_view(columns, {6, 2}).defined());
  CHECK(integers(reshape_view(columns, {6, 2})) == integers(columns));
  CHECK_FALSE(reshape_view(columns, {12}).defined());
  CHECK_FALSE(reshape_view(transpose_view(x, {2, 1, 0}), {24}).defined());
}

TEST_CASE("no axes and no elements") {
  CHECK(counted({}).size() == 1);
  CHECK(item(full({}, 2.5, Dtype::float32)) == 2.5);
  const Array none = empty({3, 0, 2}, Dtype::float32);
  CHECK(none.size() == 0);
  CHECK(none.is_contiguous());
  CHECK(reshape_view(none, {0, 5}).shape() == Shape{0, 5});
  copy(none, empty({3, 0, 2}, Dtype::float64));
}

TEST_CASE("fresh arrays keep an operand's order of memory") {
  const Array image = transpose_view(counted({2, 5, 7, 3}), {0, 3, 1, 2});
  CHECK(memory_order(image) == Axes{0, 2, 3, 1});
  CHECK(empty_like(image).strides() == image.strides());
  CHECK(empty_like(image, Dtype::int8).strides()[1] == 1);
  CHECK(memory_order(counted({4, 1, 3})) == Axes{0, 1, 2});
}

TEST_CASE("copies convert strides and dtypes together") {
  const Array x = slice_view(transpose_view(counted({3, 4, 5}), {2, 0, 1}), 1, 2, 3, -1);
  for (Dtype dtype :
       {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64, Dtype::int16}) {
    CHECK(integers(cast(x, dtype)) == integers(x));
    CHECK(integers(copy_of(cast(x, dtype))) == integers(x));
  }
  CHECK(integers(cast(counted({3}), Dtype::bool_)) == Values{0, 1, 1});
}

TEST_CASE("copies across the order of memory go in tiles of any size") {
  // Values fit into a byte, so that all dtypes hold them.
  using Extents = std::array<int, 3>;
  for (const auto& [n, rows, columns] : {Extents{1, 16, 16},
                                         {3, 129, 17},
                                         {2, 63, 40},
                                         {1, 300, 70},
                                         // These leave a core's caches, in whole lines and not.
                                         {1, 2080, 528},
                                         {1, 2081, 519}}) {
    Array x = empty({n, columns, rows}, Dtype::int64);
    Array expected = empty({n, rows, columns}, Dtype::int64);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const std::int64_t row = i % rows, column = i / rows % columns, image = i / rows / columns;
      const std::int64_t value = i * i % 127;
      x.as<std::int64_t>()[i] = value;
      expected.as<std::int64_t>()[(image * rows + row) * columns + column] = value;
    }
    for (Dtype dtype : {Dtype::int8, Dtype::bfloat16, Dtype::float32, Dtype::float64}) {
      const Array typed = cast(x, dtype);
      const Array y = empty(expected.shape(), dtype);
      copy(transpose_view(typed, {0, 2, 1}), y);
      CHECK(integers(y) == integers(cast(expected, dtype)));
      const Array back = empty_like(transpose_view(typed, {0, 2, 1}));
      copy(y, back);
      CHECK(integers(back) == integers(y));
    }
  }
}

TEST_CASE("16-bit floats round to nearest even") {
  CHECK(static_cast<float>(float16(1.0009765625f + 0.00048828125f)) == 1.001953125f);
  CHECK(static_cast<float>(float16(65504.f)) == 65504.f);
  CHECK(std::isinf(static_cast<float>(float16(65520.f))));
  CHECK(static_cast<float>(float16(5.9604645e-8f)) == 5.9604645e-8f);
  CHECK(static_cast<float>(bfloat16(1.00390625f)) == 1.f);
  CHECK(static_cast<float>(bfloat16(1.01171875f)) == 1.015625f);
  CHECK(std::isnan(static_cast<float>(bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(std::isinf(static_cast<float>(bfloat16(3.4e38f))));
}

TEST_CASE("bad shapes are refused with both shapes named") {
  CHECK_THROWS_WITH_AS(broadcast_shapes("add", {2, 3}, {4}),
                       "add: expected shapes that broadcast, got (2, 3) and (4,)", InvalidType);
  CHECK_THROWS_AS(empty({-1}, Dtype::float32), std::invalid_argument);
  CHECK_THROWS_AS(empty({1LL << 40, 1LL << 40}, Dtype::float32), OutOfMemory);
  CHECK_THROWS_AS(normalize_axis("sum", 2, 2), InvalidType);
  CHECK(normalize_axis("sum", -2, 2) == 0);
}
