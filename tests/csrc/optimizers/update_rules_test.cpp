#include "optimizers/update_rules.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace renga {
namespace {

// A vector of n elements, `step` apart in a block of their own.
Array make(std::int64_t n, Dtype dtype, std::int64_t step, double first, double slope) {
  const Array block = zeros({n * step}, dtype);
  const Array x(block.storage(), block.data(), {n}, {step * block.itemsize()}, dtype);
  visit_dtype(dtype, [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      for (std::int64_t i = 0; i < n; ++i) {
        x.as<T>()[i * step] = T(static_cast<Compute<T>>(first + slope * static_cast<double>(i)));
      }
    }
  });
  return x;
}

std::vector<double> values(const Array& x) {
  const Array y = contiguous(cast(x, Dtype::float64));
  return {y.as<double>(), y.as<double>() + y.size()};
}

double tolerance(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16:
      return 2e-3;
    case Dtype::bfloat16:
      return 2e-2;
    case Dtype::float32:
      return 1e-6;
    default:
      return 1e-14;
  }
}

constexpr Dtype kFloats[] = {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64};

}  // namespace

TEST_CASE("sgd moves against the gradient, in every float dtype and stride") {
  for (Dtype dtype : kFloats) {
    for (std::int64_t step : {1, 3}) {
      for (std::int64_t n : {0, 1, 300, 70001}) {
        const double slope = 1.0 / 70001;
        const Array x = make(n, dtype, step, 1, -slope);
        const Array g = make(n, dtype, 1, -0.5, slope);
        const auto before = values(x), gradient = values(g);
        sgd(x, g, 0.5);
        const auto after = values(x);
        double worst = 0;
        for (std::size_t i = 0; i < after.size(); ++i) {
          worst = std::max(worst, std::abs(after[i] - (before[i] - 0.5 * gradient[i])));
        }
        CHECK(worst <= tolerance(dtype));
        CHECK(values(g) == gradient);
      }
    }
  }
}

TEST_CASE("the first step of adam is alpha times the sign of the gradient") {
  const double alpha = 0.1, beta1 = 0.9, beta2 = 0.999;
  const double corrected = alpha * std::sqrt(1 - beta2) / (1 - beta1);
  const Array x = zeros({3}, Dtype::float64);
  const Array g = make(3, Dtype::float64, 1, -2, 3);
  const Array m = zeros({3}, Dtype::float64), v = zeros({3}, Dtype::float64);
  adam(x, g, m, v, Array(), {corrected, beta1, beta2, 0});
  const auto y = values(x);
  CHECK(y[0] == doctest::Approx(0.1).epsilon(1e-12));
  CHECK(y[1] == doctest::Approx(-0.1).epsilon(1e-12));
  CHECK(y[2] == doctest::Approx(-0.1).epsilon(1e-12));
}

TEST_CASE("update rules refuse arrays that differ") {
  const Array x = zeros({2, 3}, Dtype::float32);
  CHECK_THROWS_AS(sgd(x, zeros({3, 2}, Dtype::float32), 0.1), InvalidType);
  CHECK_THROWS_AS(sgd(x, zeros({2, 3}, Dtype::float64), 0.1), InvalidType);
  CHECK_THROWS_AS(sgd(zeros({2}, Dtype::int32), zeros({2}, Dtype::int32), 0.1), InvalidType);
}

}  // namespace renga
