#include "optimizers/prediction.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "floats.h"

namespace renga {
namespace {

// n elements between -1 and 1, `step` apart in a block of their own.
Array make(std::int64_t n, Dtype dtype, std::int64_t step, double phase) {
  const Array block = zeros({n * step}, dtype);
  const Array x(block.storage(), block.data(), {n}, {step * block.itemsize()}, dtype);
  visit_dtype(dtype, [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      for (std::int64_t i = 0; i < n; ++i) {
        const double value = std::sin(phase + 0.37 * static_cast<double>(i));
        x.as<T>()[i * step] = T(static_cast<Compute<T>>(value));
      }
    }
  });
  return x;
}

// The largest difference from x + 3 · 0.25 d.
double error_of_three_steps(const Array& y, const Array& x, const Array& d) {
  const auto actual = values(y), from = values(x), step = values(d);
  double worst = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    worst = std::max(worst, std::abs(actual[i] - (from[i] + 0.75 * step[i])));
  }
  return worst;
}

}  // namespace

TEST_CASE("parameters of any float dtype and stride are predicted together") {
  for (Dtype dtype : kFloats) {
    std::vector<Prediction> predictions;
    std::vector<Array> directions;
    for (std::int64_t step : {1, 3}) {
      for (std::int64_t n : {0, 1, 17, 700, 70001}) {
        const Array x = make(n, dtype, step, 1), d = make(n, dtype, 1, 2);
        predictions.push_back({make(n, dtype, 4 - step, 3), x, {}, ScaledStep{d, 0.25}});
        directions.push_back(d);
      }
    }
    predict(predictions, 3);
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      const Prediction& made = predictions[i];
      CHECK(error_of_three_steps(made.y, made.x, directions[i]) <= tolerance(dtype));
      const Array untouched = make(made.x.size(), dtype, 1, 1);
      CHECK(values(made.x) == values(untouched));
    }
  }
}

TEST_CASE("results larger than the caches are predicted, too") {
  std::vector<Prediction> predictions;
  std::vector<Array> directions;
  for (std::int64_t n : {4'500'001, 3, 4'500'000}) {
    const Array x = make(n, Dtype::float32, 1, 1), d = make(n, Dtype::float32, 1, 2);
    predictions.push_back({empty({n}, Dtype::float32), x, {}, ScaledStep{d, 0.25}});
    directions.push_back(d);
  }
  predict(predictions, 3);
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    CHECK(error_of_three_steps(predictions[i].y, predictions[i].x, directions[i]) <= 1e-6);
  }
}

TEST_CASE("a prediction for Adam is that of its step times the number of steps") {
  const Array x = make(1000, Dtype::float64, 1, 1), m = make(1000, Dtype::float64, 1, 2);
  const Array v = full({1000}, 0.16, Dtype::float64);
  const std::array options{0.01, 0.9, 0.999, 0.1, 0.5, 0.2, 0.0, 0.015};
  const Array y = empty({1000}, Dtype::float64);
  predict({{y, x, {}, AdamMoments{m, v, options}}}, 4);
  const auto actual = values(y), from = values(x), mean = values(m);
  for (std::size_t i = 0; i < actual.size(); ++i) {
    // 0.01 / (0.4 + 0.1) is above the bound of 0.015.
    const double expected = from[i] - 4 * 0.5 * (0.015 * mean[i] + 0.2 * from[i]);
    CHECK(actual[i] == doctest::Approx(expected).epsilon(1e-13));
  }
}

TEST_CASE("arrays that differ or overlap are refused") {
  const Array x = zeros({2, 3}, Dtype::float32), d = zeros({2, 3}, Dtype::float32);
  const Array y = zeros({2, 3}, Dtype::float32), wide = zeros({2, 3}, Dtype::float64);
  CHECK_THROWS_AS(predict({{wide, x, {}, {}}}, 1), InvalidType);
  CHECK_THROWS_AS(predict({{zeros({3, 2}, Dtype::float32), x, {}, {}}}, 1), InvalidType);
  CHECK_THROWS_AS(predict({{y, x, {}, ScaledStep{wide, 1}}}, 1), InvalidType);
  CHECK_THROWS_AS(predict({{y, x, wide, ScaledStep{d, 1}}}, 1), InvalidType);
  CHECK_THROWS_AS(predict({{x, x, {}, {}}}, 1), std::invalid_argument);
  CHECK_THROWS_AS(predict({{d, x, {}, ScaledStep{d, 1}}}, 1), std::invalid_argument);
  CHECK_THROWS_AS(predict({{y, x, {}, {}}, {y, d, {}, {}}}, 1), std::invalid_argument);
  CHECK_THROWS_AS(predict({{y, x, {}, {}}}, -1), std::invalid_argument);
  const Array ints = zeros({2}, Dtype::int32);
  CHECK_THROWS_AS(predict({{zeros({2}, Dtype::int32), ints, {}, {}}}, 1), InvalidType);
}

}  // namespace renga
