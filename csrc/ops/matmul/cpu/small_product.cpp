#include <algorithm>

#include "ops/matmul/cpu/float_kernels.h"
#include "simd/first_floats.h"
#include "simd/sum_each.h"

namespace renga {
namespace {

using simd::dispatch_for, simd::Floats, simd::load_floats, simd::store_floats;

// Rows of c in a tile, whose sums stay in registers.
constexpr int kRows = 4;

// `Vectors` vectors of a row, of which the last one may have only `count` numbers.
template <class Target, int Vectors, bool kIsWhole>
struct RowPart {
  int count;

  [[gnu::always_inline]] Floats<Target> load(const float* row, int v) const {
    const float* const from = row + v * Target::width;
    return kIsWhole ? load_floats<Target>(from) : simd::load_first<Target>(from, count);
  }
  [[gnu::always_inline]] void store(const Floats<Target>& x, float* row, int v) const {
    float* const to = row + v * Target::width;
    kIsWhole ? store_floats<Target>(x, to) : simd::store_first<Target>(x, to, count);
  }
};

// `Rows` rows of c, of a part of the columns: b has rows of them, `ldb` apart. Products are added
// in the order of the depth, as one by one.
template <class Target, int Rows, int Vectors, bool kIsWhole>
[[gnu::always_inline]] inline void multiply_tile(const LeftRows& a, const float* b,
                                                 std::int64_t ldb, std::int64_t k, float* c,
                                                 std::int64_t ldc, bool accumulate,
                                                 const RowPart<Target, Vectors, kIsWhole>& part) {
  Floats<Target> sums[Rows][Vectors] = {};
  if (accumulate) {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sums[r][v] = part.load(c + r * ldc, v);
    }
  }
  for (std::int64_t i = 0; i < k; ++i) {
    Floats<Target> row[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) row[v] = part.load(b + i * ldb, v);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      const simd::Vector<Target, float> factor(a.data[r * a.row_step + i * a.depth_step]);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sums[r][v] += factor.v * row[v];
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) part.store(sums[r][v], c + r * ldc, v);
  }
}

// All rows of c, of a part of the columns.
template <class Target, int Vectors, bool kIsWhole>
[[gnu::always_inline]] inline void multiply_columns(
    const LeftRows& a, const float* b, std::int64_t ldb, std::int64_t k, float* c, std::int64_t ldc,
    bool accumulate, const RowPart<Target, Vectors, kIsWhole>& part) {
  std::int64_t i = 0;
  const auto multiply = [&]<int Rows>(std::integral_constant<int, Rows>)
      __attribute__((always_inline)) {
    const LeftRows rows{a.data + i * a.row_step, a.row_step, a.depth_step, Rows};
    multiply_tile<Target, Rows>(rows, b, ldb, k, c + i * ldc, ldc, accumulate, part);
    i += Rows;
  };
  if constexpr (Vectors <= 2) {
    while (i + kRows <= a.rows) multiply(std::integral_constant<int, kRows>());
  }
  while (i < a.rows) multiply(std::integral_constant<int, 1>());
}

template <class Target>
[[gnu::always_inline]] inline void multiply_all(const LeftRows& a, const WeightColumns& b, float* c,
                                                bool accumulate) {
  constexpr std::int64_t width = Target::width;
  std::int64_t j = 0;
  const auto multiply = [&](const auto& part, std::int64_t columns) __attribute__((always_inline)) {
    multiply_columns(a, b.data + j, b.step, b.k, c + j, b.n, accumulate, part);
    j += columns;
  };
  // A single row takes more vectors at once, as each addition waits for the one before.
  while (a.rows == 1 && j + 8 * width <= b.n) multiply(RowPart<Target, 8, true>{}, 8 * width);
  while (j + 2 * width <= b.n) multiply(RowPart<Target, 2, true>{}, 2 * width);
  while (j + width <= b.n) multiply(RowPart<Target, 1, true>{}, width);
  if (j < b.n) multiply(RowPart<Target, 1, false>{static_cast<int>(b.n - j)}, b.n - j);
}

// The dot products of a row and `columns` columns, at most four, of k contiguous numbers each.
template <class Target>
[[gnu::always_inline]] inline void dot_products(const float* a, const float* b, std::int64_t ldb,
                                                std::int64_t k, float* c, int columns,
                                                bool accumulate) {
  constexpr int width = Target::width;
  Floats<Target> sums[simd::kSums] = {};
  const float* column[simd::kSums];
  // Fewer columns repeat the last one.
  for (int j = 0; j < simd::kSums; ++j) column[j] = b + std::min(j, columns - 1) * ldb;
  std::int64_t i = 0;
  for (; i + width <= k; i += width) {
    const auto row = load_floats<Target>(a + i);
#pragma GCC unroll 4
    for (int j = 0; j < simd::kSums; ++j) sums[j] += row * load_floats<Target>(column[j] + i);
  }
  if (i < k) {
    const int rest = static_cast<int>(k - i);
    const auto row = simd::load_first<Target>(a + i, rest);
#pragma GCC unroll 4
    for (int j = 0; j < simd::kSums; ++j) {
      sums[j] += row * simd::load_first<Target>(column[j] + i, rest);
    }
  }
  const simd::Sums totals = simd::sum_each<Target>(sums);
  for (int j = 0; j < columns; ++j) c[j] = accumulate ? c[j] + totals[j] : totals[j];
}

template <class Target>
[[gnu::always_inline]] inline void multiply_row(const float* a, const WeightRows& b, float* c,
                                                bool accumulate) {
  for (std::int64_t j = 0; j < b.n; j += simd::kSums) {
    const auto columns = static_cast<int>(std::min<std::int64_t>(simd::kSums, b.n - j));
    dot_products<Target>(a, b.data + j * b.step, b.step, b.k, c + j, columns, accumulate);
  }
}

}  // namespace

void multiply_small_product(const LeftRows& a, const WeightColumns& b, float* c, bool accumulate) {
  dispatch_for<float>([&](auto target) __attribute__((always_inline)) {
    multiply_all<decltype(target)>(a, b, c, accumulate);
  });
}

void multiply_small_product(const LeftRows& a, const WeightRows& b, float* c, bool accumulate) {
  constexpr std::int64_t kFewRows = 3, kMostNumbers = 4096;
  dispatch_for<float>([&](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    if (a.rows <= kFewRows || b.n * b.k > kMostNumbers) {
      for (std::int64_t i = 0; i < a.rows; ++i) {
        multiply_row<Target>(a.data + i * a.row_step, b, c + i * b.n, accumulate);
      }
      return;
    }
    // With more rows, transposing takes less time than adding up vectors.
    float columns[kMostNumbers];
    for (std::int64_t j = 0; j < b.n; ++j) {
      for (std::int64_t i = 0; i < b.k; ++i) columns[i * b.n + j] = b.data[j * b.step + i];
    }
    multiply_all<Target>(a, WeightColumns{columns, b.n, b.n, b.k}, c, accumulate);
  });
}

}  // namespace renga
