#include <algorithm>
#include <cstring>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "ops/matmul/cpu/float_kernels.h"
#include "simd/float_vector.h"
#include "simd/sum_each.h"
#include "tensor/array.h"

namespace renga {
namespace {

using simd::dispatch_for, simd::Floats, simd::load_floats;

// A tile of c is of so many dot products, whose sums stay in registers.
constexpr int kColumns = simd::kSums;
template <class Target>
inline constexpr int kMostRows = Target::width == 16 ? 6 : 2;

// The rows of `a`, contiguous and extended by zeros to a whole number of vectors.
Array padded_rows(const LeftRows& a, std::int64_t k, std::int64_t depth) {
  const Array padded = empty({a.rows, depth}, Dtype::float32);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    float* const to = padded.as<float>() + i * depth;
    const float* const from = a.data + i * a.row_step;
    for (std::int64_t j = 0; j < k; ++j) to[j] = from[j * a.depth_step];
    std::fill(to + k, to + depth, 0.f);
  }
  return padded;
}

// A Problem is what the tiles of a product have in common.
struct Problem {
  const float* a;
  std::int64_t depth;  // from row to row of `a`
  const float* b;
  std::int64_t ldb, k;
  float* c;
  std::int64_t n;
  Addend addend;
};

// Rows of c from `row` on and columns from `column` on, `columns` of them.
template <class Target, int Rows>
[[gnu::always_inline]] inline void multiply_tile(const Problem& p, std::int64_t row,
                                                 std::int64_t column, int columns) {
  constexpr int width = Target::width;
  const float* const a = p.a + row * p.depth;
  const float* b[kColumns];
  // Fewer columns repeat the last one.
  for (int j = 0; j < kColumns; ++j) b[j] = p.b + (column + std::min(j, columns - 1)) * p.ldb;
  Floats<Target> sums[Rows][kColumns] = {};
  const auto add = [&](const float* left, const float* const* right, std::int64_t offset)
      __attribute__((always_inline)) {
    Floats<Target> factors[kColumns];
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) factors[j] = load_floats<Target>(right[j] + offset);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const Floats<Target> factor = load_floats<Target>(left + r * p.depth);
#pragma GCC unroll 4
      for (int j = 0; j < kColumns; ++j) sums[r][j] += factor * factors[j];
    }
  };
  std::int64_t i = 0;
  for (; i + width <= p.k; i += width) {
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) {
      // This prefetches to the L2 cache, which has more reads from memory under way than the L1
      // cache.
      __builtin_prefetch(b[j] + kColumns * p.ldb + i, 0, 2);
    }
    add(a + i, b, i);
  }
  if (i < p.k) {
    float rest[kColumns][width] = {};
    const float* last[kColumns];
    for (int j = 0; j < kColumns; ++j) {
      std::memcpy(rest[j], b[j] + i, static_cast<std::size_t>(p.k - i) * sizeof(float));
      last[j] = rest[j];
    }
    add(a + i, last, 0);
  }
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) {
    simd::Sums totals = simd::sum_each<Target>(sums[r]);
    float* const to = p.c + (row + r) * p.n + column;
    const float* const addend = p.addend.from(row + r, column).data;
    if (columns == kColumns) {
      if (addend != nullptr) {
        simd::Sums before;
        std::memcpy(&before, addend, sizeof before);
        totals += before;
      }
      std::memcpy(to, &totals, sizeof totals);
      continue;
    }
    for (int j = 0; j < columns; ++j) to[j] = addend != nullptr ? addend[j] + totals[j] : totals[j];
  }
}

// Tiles of as many columns, from `column` on, that have all `m` rows: as high as possible and as
// even as possible.
template <class Target>
[[gnu::always_inline]] inline void multiply_columns(const Problem& p, std::int64_t m,
                                                    std::int64_t column, int columns) {
  const std::int64_t tiles = divide_up(m, kMostRows<Target>);
  for (std::int64_t tile = 0, row = 0; tile < tiles; ++tile) {
    const std::int64_t rows = (m - row) / (tiles - tile);
    switch (rows) {
      case 1:
        multiply_tile<Target, 1>(p, row, column, columns);
        break;
      case 2:
        multiply_tile<Target, 2>(p, row, column, columns);
        break;
      default:
        if constexpr (kMostRows < Target >> 2) {
          if (rows == 3) multiply_tile<Target, 3>(p, row, column, columns);
          if (rows == 4) multiply_tile<Target, 4>(p, row, column, columns);
          if (rows == 5) multiply_tile<Target, 5>(p, row, column, columns);
          if (rows == 6) multiply_tile<Target, 6>(p, row, column, columns);
        }
    }
    row += rows;
  }
}

// A part of the depth, a whole number of vectors. Tiles of the same columns of b read them from the
// L1 cache, and rows of `a` from the L2 cache. In more parts, summing up vectors would take a
// larger share of the time; a single tile reads the columns once, in the order of memory.
template <class Target>
std::int64_t part_of(std::int64_t rows, std::int64_t depth) {
  constexpr std::int64_t kDepth = 704, kElements = 32768;  // of `a`
  std::int64_t parts = (rows * depth + kElements / 2) / kElements;
  if (rows > kMostRows<Target>) parts = std::max(parts, divide_up(depth, kDepth));
  parts = std::max<std::int64_t>(parts, 1);
  return round_up(divide_up(depth, parts), Target::width);
}

}  // namespace

void multiply_few_rows(const LeftRows& a, const WeightRows& weights, float* c,
                       const Addend& addend) {
  const std::int64_t n = weights.n, k = weights.k;
  constexpr std::int64_t kWidest = 16;  // floats of a vector
  const std::int64_t depth = round_up(k, kWidest);
  const Array rows = padded_rows(a, k, depth);
  parallel_for(n, a.rows * k / 8, [&](std::int64_t begin, std::int64_t end) {
    dispatch_for<float>([&](auto target) __attribute__((always_inline)) {
      const std::int64_t part = part_of<decltype(target)>(a.rows, depth);
      for (std::int64_t i = 0; i < k; i += part) {
        const Problem problem{rows.as<float>() + i,
                              depth,
                              weights.data + i,
                              weights.step,
                              std::min(part, k - i),
                              c,
                              n,
                              i == 0 ? addend : Addend{c, n}};
        for (std::int64_t j = begin; j < end; j += kColumns) {
          const auto columns = static_cast<int>(std::min<std::int64_t>(kColumns, end - j));
          multiply_columns<decltype(target)>(problem, a.rows, j, columns);
        }
      }
    });
  });
}

}  // namespace renga
