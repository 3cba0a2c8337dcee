#include "optimizers/update_rules.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "floats.h"

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

void sgd(const Array& x, const Gradient& g, double lr) {
  update(rule_index("sgd"), x, g, {}, {{lr}});
}

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
  const double infinity = std::numeric_limits<double>::infinity();
  update(rule_index("adam"), x, g, {{m, v}}, {{corrected, beta1, beta2, 0, 1, 0, 0, infinity}});
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

TEST_CASE("updates that are made together are applied at the end, in order") {
  const Array x = full({3}, 1, Dtype::float32), y = full({2}, 1, Dtype::float64);
  const Array g = full({3}, 1, Dtype::float32), h = full({2}, 1, Dtype::float64);
  const Array v = zeros({3}, Dtype::float32);
  const auto make = [&] {
    sgd(x, {g, 2, 1}, 0.5);  // 1 - (2 + 1) / 2
    sgd(y, h, 0.25);
    update(rule_index("momentum_sgd"), x, g, {{v}}, {{0.5, 0.9}});
    CHECK(values(x) == std::vector<double>{1, 1, 1});
  };
  update_together(make);
  CHECK(values(x) == std::vector<double>{-2, -2, -2});  // by the gradient 3 that sgd has left
  CHECK(values(y) == std::vector<double>{0.75, 0.75});
}

TEST_CASE("updates that were made together before an error are applied, and no others deferred") {
  const Array x = full({2}, 1, Dtype::float32), g = full({2}, 1, Dtype::float32);
  const auto make = [&] {
    sgd(x, g, 1);
    throw std::runtime_error("no more");
  };
  CHECK_THROWS_WITH(update_together(make), "no more");
  CHECK(values(x) == std::vector<double>{0, 0});
  sgd(x, g, 1);
  CHECK(values(x) == std::vector<double>{-1, -1});
}

TEST_CASE("a mask stops an update, and adam leaves out those that were stopped") {
  const double alpha = 0.1, beta1 = 0.9, beta2 = 0.99;
  const auto corrected = [&](double t) {
    return alpha * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const auto step = [&](const Array& x, const Array& m, const Array& v, const Gradient& g,
                        double t) {
    update(rule_index("adam"), x, g, {{m, v}},
           {{corrected(t), beta1, beta2, 1e-8, 1, 0, 0, infinity}});
  };
  Gradient g(full({3}, 0.5, Dtype::float64));
  const Array x = zeros({3}, Dtype::float64), y = zeros({3}, Dtype::float64);
  const Array m = zeros({3}, Dtype::float64), v = zeros({3}, Dtype::float64);
  const Array m2 = zeros({3}, Dtype::float64), v2 = zeros({3}, Dtype::float64);
  const Array mask = zeros({2}, Dtype::float32);
  mask.as<float>()[0] = 1;
  g.mask = {mask, 1};
  step(x, m, v, g, 1);
  CHECK(values(x) == std::vector<double>{0, 0, 0});
  CHECK(values(m) == std::vector<double>{0, 0, 0});
  mask.as<float>()[0] = 0;
  mask.as<float>()[1] = 1;
  for (const double t : {2, 3}) {
    g.mask->t = t;
    step(x, m, v, g, t);
    step(y, m2, v2, g.array, t - 1);
  }
  for (int i = 0; i < 3; ++i) CHECK(values(x)[i] == doctest::Approx(values(y)[i]).epsilon(1e-12));
  g.mask->values = zeros({2}, Dtype::float64);
  CHECK_THROWS_AS(step(x, m, v, g, 4), InvalidType);
}

}  // namespace renga
