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
