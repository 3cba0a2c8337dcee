// Products by dot products, and by panels and blocks of weights, against sums in float64.
#include <doctest/doctest.h>
#include <omp.h>

#include <cmath>
#include <vector>

#include "ops/matmul/cpu/float_kernels.h"

using namespace renga;

namespace {

// Rows that are `step` apart.
struct Rows {
  std::vector<float> numbers;
  std::int64_t step;

  float operator()(std::int64_t row, std::int64_t column) const {
    return numbers[static_cast<std::size_t>(row * step + column)];
  }
};

Rows rows_of(std::int64_t rows, std::int64_t columns, int seed) {
  Rows x{{}, columns + 3};
  for (std::int64_t i = 0; i < rows * x.step; ++i) {
    x.numbers.push_back(std::sin(static_cast<float>(seed + 7 * i)));
  }
  return x;
}

// Calls multiply(a, b, c, addend), with b as Weights, and compares c. The addend is c itself or one
// row.
template <class Weights, class Multiply>
void check_product(std::int64_t m, std::int64_t n, std::int64_t k, bool by_columns, bool accumulate,
                   const Multiply& multiply) {
  constexpr bool is_transposed = std::is_same_v<Weights, WeightRows>;
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  const Rows a = by_columns ? rows_of(k, m, 1) : rows_of(m, k, 1);
  const Rows b = is_transposed ? rows_of(n, k, 2) : rows_of(k, n, 2);
  const LeftRows left{a.numbers.data(), by_columns ? 1 : a.step, by_columns ? a.step : 1, m};
  constexpr float kBefore = 3;
  // One number more, which must not be written to.
  std::vector<float> c(static_cast<std::size_t>(m * n + 1), kBefore);
  const Rows bias = rows_of(1, n, 3);
  const Addend addend =
      accumulate ? Addend{c.data(), n} : Addend{m % 3 > 0 ? bias.numbers.data() : nullptr};
  multiply(left, Weights{b.numbers.data(), b.step, n, k}, c, addend);
  CHECK(c.back() == kBefore);
  double largest = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = accumulate ? kBefore : m % 3 > 0 ? double{bias(0, j)} : 0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += double{by_columns ? a(l, i) : a(i, l)} * double{is_transposed ? b(j, l) : b(l, j)};
      }
      largest = std::max(largest, std::abs(sum - double{c[static_cast<std::size_t>(i * n + j)]}));
    }
  }
  CHECK(largest <= 6e-7 * static_cast<double>(k + 3));
}

}  // namespace

TEST_CASE("products with few rows are those of float64") {
  // Edges of tiles, vectors and parts of the depth.
  for (const std::int64_t m : {1, 5, 6, 7, 20, 48}) {
    for (const std::int64_t n : {1, 3, 4, 5, 130}) {
      for (const std::int64_t k : {1, 15, 16, 65, 700, 1500}) {
        check_product<WeightRows>(
            m, n, k, m % 2 == 0, n % 2 == 0,
            [](const LeftRows& a, const WeightRows& b, auto& c, const Addend& addend) {
              multiply_few_rows(a, b, c.data(), addend);
            });
      }
    }
  }
}

namespace {

// The same bits with panels that are kept.
template <class Weights>
void check_panels(std::int64_t m, std::int64_t n, std::int64_t k) {
  check_product<Weights>(m, n, k, m % 2 == 0, n % 2 == 0,
                         [](const LeftRows& a, const Weights& b, auto& c, Addend addend) {
                           auto kept = c;
                           multiply_by_panels(a, b, {}, c.data(), addend);
                           if (addend.row_step > 0) addend.data = kept.data();
                           multiply_by_panels(a, b, pack_panels(b), kept.data(), addend);
                           CHECK(kept == c);
                         });
}

}  // namespace

TEST_CASE("products by panels of weights are those of float64") {
  // Edges of tiles, vectors, panels and parts of the depth.
  for (const std::int64_t m : {1, 5, 6, 7, 12, 13, 20, 48}) {
    for (const std::int64_t n : {1, 3, 16, 31, 33, 130}) {
      for (const std::int64_t k : {1, 15, 16, 65, 256, 257, 700, 1500}) {
        check_panels<WeightRows>(m, n, k);
        check_panels<WeightColumns>(m, n, k);
      }
    }
  }
  // So large that panels are written past the caches.
  check_panels<WeightRows>(20, 300, 1001);
  check_panels<WeightColumns>(20, 300, 1001);
}

namespace {

// Calls multiply(c, addend) on one thread and on so many, which give the same bits in `c`.
template <class Multiply>
void multiply_on_threads(std::vector<float>& c, Addend addend, int threads,
                         const Multiply& multiply) {
  const int before = omp_get_max_threads();
  auto other = c;
  omp_set_num_threads(1);
  multiply(c.data(), addend);
  if (addend.row_step > 0) addend.data = other.data();
  omp_set_num_threads(threads);
  multiply(other.data(), addend);
  omp_set_num_threads(before);
  CHECK(other == c);
}

template <class Weights>
void check_blocks(std::int64_t m, std::int64_t n, std::int64_t k, int threads) {
  CAPTURE(threads);
  check_product<Weights>(m, n, k, false, n % 2 == 0,
                         [=](const LeftRows& a, const Weights& b, auto& c, const Addend& addend) {
                           multiply_on_threads(c, addend, threads,
                                               [&](float* c, const Addend& addend) {
                                                 multiply_by_blocks(a, b, c, addend);
                                               });
                         });
}

// The rows come in two parts, the later ones first.
void check_stacked_rows(std::int64_t m, std::int64_t n, std::int64_t k, int threads) {
  CAPTURE(threads);
  check_product<WeightColumns>(
      m, n, k, true, n % 2 == 0,
      [=](const LeftRows& a, const WeightColumns& b, auto& c, const Addend& addend) {
        StackedRows left{{}, m}, right{{}, n};
        const std::int64_t half = k / 2;
        left.add(a.data + half * a.depth_step, a.depth_step, k - half);
        left.add(a.data, a.depth_step, half);
        right.add(b.data + half * b.step, b.step, k - half);
        right.add(b.data, b.step, half);
        multiply_on_threads(c, addend, threads, [&](float* c, const Addend& addend) {
          multiply_stacked_rows(left, right, c, addend);
        });
      });
}

}  // namespace

TEST_CASE("products by blocks of weights are those of float64, on any number of threads") {
  // Edges of tiles, panels and blocks.
  for (const std::int64_t m : {1, 5, 12, 47, 100}) {
    for (const std::int64_t n : {1, 16, 33, 130, 545}) {
      for (const std::int64_t k : {1, 17, 384, 385, 800}) {
        check_blocks<WeightRows>(m, n, k, 6);
        check_blocks<WeightColumns>(m, n, k, 6);
      }
    }
  }
  // Fewer panels, or tiles, than threads side by side.
  check_blocks<WeightRows>(130, 64, 4000, 36);
  check_blocks<WeightColumns>(13, 700, 4000, 36);
}

TEST_CASE("products of stacked rows are those of float64, on any number of threads") {
  // Edges of tiles, groups, panels and blocks.
  for (const std::int64_t m : {1, 12, 47, 48, 100}) {
    for (const std::int64_t n : {1, 16, 33, 130, 545}) {
      for (const std::int64_t k : {1, 17, 384, 385, 800}) check_stacked_rows(m, n, k, 6);
    }
  }
  // More than a block; fewer panels, or groups, than threads side by side.
  check_stacked_rows(50, 700, 1500, 2);
  check_stacked_rows(130, 64, 4000, 36);
  check_stacked_rows(13, 700, 4000, 36);
}

namespace {

template <class Weights>
void check_small_product(std::int64_t m, std::int64_t n, std::int64_t k) {
  const bool by_columns = std::is_same_v<Weights, WeightColumns> && m % 2 == 0;
  check_product<Weights>(m, n, k, by_columns, n % 2 == 0,
                         [=](const LeftRows& a, const Weights& b, auto& c, const Addend& addend) {
                           const bool accumulate = addend.row_step > 0;
                           multiply_small_product(a, b, c.data(), accumulate);
                           if (accumulate || addend.data == nullptr) return;
                           for (std::int64_t i = 0; i < m * n; ++i) {
                             c[static_cast<std::size_t>(i)] += addend.data[i % n];
                           }
                         });
}

}  // namespace

TEST_CASE("products of few numbers are those of float64") {
  // Edges of tiles and vectors.
  for (const std::int64_t m : {1, 3, 4, 5, 9}) {
    for (const std::int64_t n : {1, 3, 4, 5, 8, 15, 16, 17, 33}) {
      for (const std::int64_t k : {1, 2, 7, 8, 17, 65}) {
        check_small_product<WeightRows>(m, n, k);
        check_small_product<WeightColumns>(m, n, k);
      }
    }
  }
}
