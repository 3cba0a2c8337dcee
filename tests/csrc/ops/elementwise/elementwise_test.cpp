// Strided kernels against xtensor, which walks arrays in its own way.
#include "ops/elementwise/elementwise.h"

#include <doctest/doctest.h>

#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xrandom.hpp>
#include <xtensor/xview.hpp>

#include "ops/reduction/reduction.h"
#include "tensor/views.h"

using namespace renga;

namespace {

Array from(const xt::xarray<double>& x) {
  Shape shape;
  for (auto n : x.shape()) shape.push_back(static_cast<std::int64_t>(n));
  Array y = empty(shape, Dtype::float64);
  std::copy(x.begin(), x.end(), y.as<double>());
  return y;
}

void check_equal(const Array& x, const xt::xarray<double>& expected) {
  const Array flat = contiguous(x);
  REQUIRE(static_cast<std::size_t>(flat.size()) == expected.size());
  std::int64_t i = 0;
  for (double e : expected) CHECK(flat.as<double>()[i++] == doctest::Approx(e).epsilon(1e-12));
}

}  // namespace

TEST_CASE("broadcast, transposed and reversed operands") {
  const xt::xarray<double> a = xt::random::rand<double>({4, 3, 5}, 0.5, 2);
  const xt::xarray<double> b = xt::random::rand<double>({3, 1}, 0.5, 2);
  check_equal(apply("test", Binary::multiply, from(a), from(b)), a * b);
  check_equal(apply("test", Binary::divide, transpose_view(from(a), {2, 1, 0}), from(b)),
              xt::transpose(a, {2, 1, 0}) / b);
  check_equal(apply(Unary::log, slice_view(from(a), 2, 4, 5, -1)),
              xt::log(xt::view(a, xt::all(), xt::all(), xt::range(4, xt::placeholders::_, -1))));
}

TEST_CASE("reductions over any axes of any order of memory") {
  const xt::xarray<double> a = xt::random::rand<double>({6, 7, 8, 9}, -1, 1);
  const Array x = from(a);
  for (const Axes& axes : {Axes{0}, Axes{3}, Axes{1, 2}, Axes{0, 2, 3}, Axes{0, 1, 2, 3}}) {
    const std::vector<std::size_t> over(axes.begin(), axes.end());
    check_equal(reduce(Reduction::sum, x, axes), xt::sum(a, over));
    check_equal(reduce(Reduction::max, x, axes), xt::amax(a, over));
    const Array turned = transpose_view(copy_of(transpose_view(x, {3, 1, 0, 2})), {2, 1, 3, 0});
    check_equal(reduce(Reduction::min, turned, axes), xt::amin(a, over));
  }
}

TEST_CASE("arrays that no cache keeps, wherever they begin") {
  const std::int64_t n = (std::int64_t{1} << 22) + 100;  // of 8 bytes, and more than 32 MiB
  const Array memory = empty({n + 1}, Dtype::float64), x = empty({n}, Dtype::float64);
  for (std::int64_t i = 0; i < n; ++i) x.as<double>()[i] = static_cast<double>(i % 1009 - 500);
  const auto holds = [n](const Array& y, auto expected) {
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      wrong += y.as<double>()[i] != expected(static_cast<double>(i % 1009 - 500));
    }
    return wrong == 0;
  };
  const auto doubled = [](double v) { return 2 * v; };
  const ElementwiseKernels& kernels = elementwise_kernels.on(x.device());
  const Array two = full({}, 2, Dtype::float64);
  for (std::int64_t first : {0, 1}) {
    const Array y = slice_view(memory, 0, first, n);
    kernels.unary(Unary::square, 0, 0, x, y);
    CHECK(holds(y, [](double v) { return v * v; }));
    kernels.binary(Binary::add, 0, x, x, y);
    CHECK(holds(y, doubled));
    kernels.binary(Binary::multiply, 0, broadcast_view("test", two, x.shape()), x, y);
    CHECK(holds(y, doubled));
  }
  kernels.binary(Binary::add, 0, x, x, x);
  CHECK(holds(x, doubled));
}
