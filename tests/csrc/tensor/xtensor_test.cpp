// Arrays as xtensor's expressions.
#include "renga/xtensor.h"

#include <doctest/doctest.h>

#include <xtensor/xmath.hpp>
#include <xtensor/xview.hpp>

#include "tensor/views.h"

namespace renga {

TEST_CASE("xtensor reads and writes the memory of arrays with any strides") {
  const Array x = zeros({3, 4}, Dtype::float32);
  for (int i = 0; i < 12; ++i) x.as<float>()[i] = static_cast<float>(i);
  const Array every_other = slice_view(transpose_view(x, {1, 0}), 0, 3, 2, -2);  // rows 3 and 1
  auto view = as_xtensor<float, 2>(every_other);
  CHECK(view(0, 2) == 11);
  CHECK(view(1, 0) == 1);
  CHECK(xt::sum(view)() == 3 + 7 + 11 + 1 + 5 + 9);
  view(1, 0) = 100;
  CHECK(x.as<float>()[1] == 100);
  CHECK_THROWS_AS((as_xtensor<double, 2>(x)), InvalidType);
}

TEST_CASE("arrays show the memory of xtensor's containers and views with any strides") {
  xt::xtensor<float, 2> x{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}};
  const Array all = view_of(x);
  CHECK(all.data() == reinterpret_cast<std::byte*>(x.data()));
  auto reversed = xt::strided_view(xt::transpose(x), {xt::range(3, xt::placeholders::_, -2)});
  const Array rows = view_of(reversed);
  REQUIRE(rows.shape() == Shape{2, 3});
  const Array copied = contiguous(rows);
  const std::array<float, 6> expected{3, 7, 11, 1, 5, 9};
  for (std::size_t i = 0; i < 6; ++i) CHECK(copied.as<float>()[i] == expected[i]);
  fill(rows, 100);
  CHECK(x(0, 3) == 100);
  CHECK(x(0, 2) == 2);
  auto column = xt::view(x, xt::all(), 2);
  fill(view_of(column), 50);
  CHECK(x(2, 2) == 50);
  CHECK(x(2, 1) == 100);
}

TEST_CASE("arrays of expressions are new and row-major") {
  const Array x = full({2, 1, 3}, 2, Dtype::float64);
  auto view = as_xtensor<double, 3>(x);
  const Array y = array_of(view * view + xt::xtensor<double, 1>{1, 2, 3});
  CHECK(y.shape() == Shape{2, 1, 3});
  CHECK(y.dtype() == Dtype::float64);
  CHECK(y.as<double>()[5] == 7);
  CHECK(array_of(xt::xtensor<bool, 1>{true, false}).dtype() == Dtype::bool_);
}

}  // namespace renga
