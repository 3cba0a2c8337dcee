// Factorizations in blocks: of each block by rows of vectors, of what is left by products. A matrix
// is copied to one whose rows are whole vectors.
#include "ops/linalg/linalg.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "ops/matmul/cpu/gemm.h"
#include "simd/vector.h"

namespace renga {
namespace {

constexpr std::int64_t kBlock = 48, kPadding = 16;

// A square matrix whose rows end with zeros. They are an odd number of paddings apart, so that the
// numbers of a column do not share their places in the caches.
template <class T>
struct Matrix {
  std::int64_t n, step;
  Array elements;

  explicit Matrix(std::int64_t n)
      : n(n),
        step((divide_up(n, kPadding) | 1) * kPadding),
        elements(zeros({n, step}, dtype_of<T>)) {}
  explicit Matrix(const T* x, std::int64_t n) : Matrix(n) {
    for (std::int64_t i = 0; i < n; ++i) std::copy_n(x + i * n, n, row(i));
  }
  T* row(std::int64_t i) { return elements.as<T>() + i * step; }
  T& at(std::int64_t i, std::int64_t j) { return row(i)[j]; }
  Strided<T> from(std::int64_t i, std::int64_t j) { return {row(i) + j, step, 1}; }
  std::int64_t end_of_block(std::int64_t i) const { return std::min(n, i + kBlock); }
};

// to[...] -= factor from[...], of whole vectors.
template <class L, class T>
[[gnu::always_inline]] inline void subtract_row(T factor, const T* from, T* to, std::int64_t n) {
  const typename L::V v = L::broadcast(&factor);
  for (std::int64_t i = 0; i < n; i += L::width) {
    L::store(L::load(to + i) - v * L::load(from + i), to + i);
  }
}

enum class Substitution { down_by_ones, down, up };  // down_by_ones: 1 on the diagonal

// x = triangle⁻¹ x for so many rows of x, `step` apart, and columns, of which whole vectors are
// computed.
template <class T>
void substitute(Substitution way, const Strided<T>& triangle, T* x, std::int64_t step,
                std::int64_t rows, std::int64_t columns) {
  simd::dispatch_for<T>([&](auto target) __attribute__((always_inline)) {
    using L = simd::Vector<decltype(target), T>;
    constexpr int vectors = kPadding / L::width;
    const bool is_upwards = way == Substitution::up;
    for (std::int64_t c = 0; c < columns; c += kPadding) {
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t i = is_upwards ? rows - 1 - r : r;
        const T* const factors = triangle.from(i, 0).data;
        T* const row = x + i * step + c;
        typename L::V sums[vectors];
        for (int v = 0; v < vectors; ++v) sums[v] = L::load(row + v * L::width);
        for (std::int64_t s = 0; s < r; ++s) {
          const std::int64_t k = is_upwards ? rows - 1 - s : s;
          const typename L::V factor = L::broadcast(factors + k * triangle.column_step);
          for (int v = 0; v < vectors; ++v) {
            sums[v] -= factor * L::load(x + k * step + c + v * L::width);
          }
        }
        const typename L::V diagonal = L::broadcast(factors + i * triangle.column_step);
        for (int v = 0; v < vectors; ++v) {
          if (way != Substitution::down_by_ones) sums[v] /= diagonal;
          L::store(sums[v], row + v * L::width);
        }
      }
    }
  });
}

// L and U of the matrix with its rows exchanged, in its place.
template <class T>
struct Lu {
  Matrix<T>& a;
  std::vector<std::int64_t> order;  // the rows of the matrix
  bool is_odd = false, is_singular = false;

  explicit Lu(Matrix<T>& a) : a(a), order(static_cast<std::size_t>(a.n)) {
    for (std::int64_t i = 0; i < a.n; ++i) order[static_cast<std::size_t>(i)] = i;
    for (std::int64_t begin = 0; begin < a.n; begin += kBlock) {
      const std::int64_t end = a.end_of_block(begin);
      factor_columns(begin, end);
      if (end == a.n) break;
      substitute(Substitution::down_by_ones, a.from(begin, begin), a.row(begin) + end, a.step,
                 end - begin, a.n - end);
      gemm(a.from(end, begin), a.from(begin, end), a.row(end) + end, a.step, a.n - end, a.n - end,
           end - begin, T(-1), true);
    }
  }

 private:
  void factor_columns(std::int64_t begin, std::int64_t end) {
    T pivot_row[kBlock + kPadding];
    simd::dispatch_for<T>([&](auto target) __attribute__((always_inline)) {
      using L = simd::Vector<decltype(target), T>;
      for (std::int64_t j = begin; j < end; ++j) {
        const T pivot = bring_pivot(j);
        if (pivot == 0) {
          is_singular = true;
          continue;
        }
        // Whole vectors of the columns behind j.
        const std::int64_t first = begin + (j - begin) / L::width * L::width;
        const std::int64_t count = round_up(end - first, L::width);
        for (std::int64_t c = 0; c < count; ++c) {
          pivot_row[c] = first + c > j && first + c < end ? a.at(j, first + c) : T(0);
        }
        // The inverse of a subnormal number may be infinite.
        const bool is_normal = std::abs(pivot) >= std::numeric_limits<T>::min();
        const T inverse = 1 / pivot;
        for (std::int64_t i = j + 1; i < a.n; ++i) {
          const T factor = is_normal ? a.at(i, j) * inverse : a.at(i, j) / pivot;
          subtract_row<L>(factor, pivot_row, a.row(i) + first, count);
          a.at(i, j) = factor;  // not before: a vector that is loaded would wait for it
        }
      }
    });
  }

  // Exchanges row j for the one with the largest element in column j, and returns this element.
  T bring_pivot(std::int64_t j) {
    std::int64_t largest = j;
    T size = std::abs(a.at(j, j));
    for (std::int64_t i = j + 1; i < a.n; ++i) {
      const T other = std::abs(a.at(i, j));
      if (other <= size || std::isnan(other)) continue;
      size = other;
      largest = i;
    }
    if (largest != j) {
      std::swap_ranges(a.row(j), a.row(j) + a.n, a.row(largest));
      std::swap(order[static_cast<std::size_t>(j)], order[static_cast<std::size_t>(largest)]);
      is_odd = !is_odd;
    }
    return a.at(j, j);
  }
};

// The inverse of a lower triangular matrix, above whose diagonal anything may be.
template <class T>
Matrix<T> lower_inverse(Substitution way, Matrix<T>& lower) {
  Matrix<T> x(lower.n);
  for (std::int64_t i = 0; i < x.n; ++i) x.at(i, i) = 1;
  for (std::int64_t begin = 0; begin < x.n; begin += kBlock) {
    const std::int64_t end = x.end_of_block(begin), rows = end - begin;
    gemm(lower.from(begin, 0), x.from(0, 0), x.row(begin), x.step, rows, begin, begin, T(-1), true);
    substitute(way, lower.from(begin, begin), x.row(begin), x.step, rows, end);
  }
  return x;
}

template <class T>
bool invert(const T* a, std::int64_t n, T* y) {
  Matrix<T> factors(a, n);
  const Lu<T> lu(factors);
  if (lu.is_singular) return true;
  Matrix<T> x = lower_inverse(Substitution::down_by_ones, factors);
  for (std::int64_t begin = (n - 1) / kBlock * kBlock; begin >= 0; begin -= kBlock) {
    const std::int64_t end = x.end_of_block(begin), rows = end - begin;
    if (end < n) {
      gemm(factors.from(begin, end), x.from(end, 0), x.row(begin), x.step, rows, n, n - end, T(-1),
           true);
    }
    substitute(Substitution::up, factors.from(begin, begin), x.row(begin), x.step, rows, n);
  }
  // The inverse of the matrix with exchanged rows has exchanged columns.
  for (std::int64_t i = 0; i < n; ++i) {
    const T* const row = x.row(i);
    for (std::int64_t j = 0; j < n; ++j) y[i * n + lu.order[static_cast<std::size_t>(j)]] = row[j];
  }
  return false;
}

// Exponents are added up apart: a product of many numbers may be out of range on the way.
template <class T>
T determinant(const T* a, std::int64_t n) {
  Matrix<T> factors(a, n);
  const Lu<T> lu(factors);
  double product = lu.is_odd ? -1 : 1;
  std::int64_t exponent = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    int exponent_of_one = 0;
    product = std::frexp(product * static_cast<double>(factors.at(i, i)), &exponent_of_one);
    exponent += exponent_of_one;
  }
  return static_cast<T>(
      std::ldexp(product, static_cast<int>(std::clamp<std::int64_t>(exponent, -9999, 9999))));
}

// The factor is computed as its transpose x, which is upper triangular: xᵀ x = a.
template <class T>
bool factor_symmetric(const T* a, std::int64_t n, T* y) {
  Matrix<T> x(n);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) x.at(j, i) = a[i * n + j];
  }
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t end = x.end_of_block(begin);
    bool is_positive = true;
    simd::dispatch_for<T>([&](auto target) __attribute__((always_inline)) {
      using L = simd::Vector<decltype(target), T>;
      for (std::int64_t j = begin; j < end && is_positive; ++j) {
        is_positive = x.at(j, j) > 0;
        const T root = std::sqrt(x.at(j, j));
        for (std::int64_t c = j; c < x.step; ++c) x.at(j, c) /= root;
        for (std::int64_t i = j + 1; i < end; ++i) {
          const std::int64_t first = i / L::width * L::width;  // what is below the diagonal is free
          subtract_row<L>(x.at(j, i), x.row(j) + first, x.row(i) + first, x.step - first);
        }
      }
    });
    if (!is_positive) return true;
    for (std::int64_t i = end; i < n; i += kBlock) {
      gemm(x.from(begin, i).transposed(), x.from(begin, i), x.row(i) + i, x.step,
           x.end_of_block(i) - i, n - i, end - begin, T(-1), true);
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) y[i * n + j] = j <= i ? x.at(j, i) : T(0);
  }
  return false;
}

// The gradient is computed as that composed of operations in linalg.cpp, without the zeros of
// triangles.
template <class T>
void factor_symmetric_grad(const T* y, const T* gy, std::int64_t n, T* ga) {
  Matrix<T> lower(y, n), gradient(gy, n), middle(n), product(n);
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t end = lower.end_of_block(begin);
    gemm(lower.from(begin, begin).transposed(), gradient.from(begin, 0), middle.row(begin),
         middle.step, end - begin, end, n - begin, T(1), false);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    middle.at(i, i) /= 2;
    std::fill(middle.row(i) + i + 1, middle.row(i) + n, T(0));
  }
  Matrix<T> root = lower_inverse(Substitution::down, lower);
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t end = root.end_of_block(begin);
    gemm(middle.from(begin, 0), root.from(0, 0), product.row(begin), product.step, end - begin, end,
         end, T(1), false);
  }
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t end = root.end_of_block(begin);
    gemm(root.from(begin, begin).transposed(), product.from(begin, 0), middle.row(begin),
         middle.step, end - begin, n, n - begin, T(1), false);
  }
  // The loops go by squares that stay in the caches.
  for (std::int64_t block = 0; block < n; block += kPadding) {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = block; j < std::min(n, block + kPadding); ++j) {
        ga[i * n + j] = (middle.at(i, j) + middle.at(j, i)) / 2;
      }
    }
  }
}

// Calls body(Type<T>{}, n, i) for matrix i of a stack of (n, n) matrices.
template <class Body>
void for_each_matrix(const Array& a, const Body& body) {
  const std::int64_t n = a.shape(a.ndim() - 1);
  std::int64_t count = 1;
  for (int axis = 0; axis < a.ndim() - 2; ++axis) count *= a.shape(axis);
  const GilRelease work(count * n * n * n);
  visit_wide(a.dtype(), [&]<class T>(Type<T> type) {
    parallel_for(count, count > 1 ? n * n * n : 0, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) body(type, n, i);
    });
  });
}

bool inverse_cpu(const Array& a, const Array& y) {
  std::atomic<bool> is_singular = false;
  for_each_matrix(a, [&]<class T>(Type<T>, std::int64_t n, std::int64_t i) {
    if (invert(a.as<const T>() + i * n * n, n, y.as<T>() + i * n * n)) is_singular = true;
  });
  return is_singular;
}

void determinant_cpu(const Array& a, const Array& y) {
  for_each_matrix(a, [&]<class T>(Type<T>, std::int64_t n, std::int64_t i) {
    y.as<T>()[i] = determinant(a.as<const T>() + i * n * n, n);
  });
}

bool cholesky_cpu(const Array& a, const Array& y) {
  std::atomic<bool> is_indefinite = false;
  for_each_matrix(a, [&]<class T>(Type<T>, std::int64_t n, std::int64_t i) {
    if (factor_symmetric(a.as<const T>() + i * n * n, n, y.as<T>() + i * n * n)) {
      is_indefinite = true;
    }
  });
  return is_indefinite;
}

void cholesky_grad_cpu(const Array& y, const Array& gy, const Array& ga) {
  for_each_matrix(y, [&]<class T>(Type<T>, std::int64_t n, std::int64_t i) {
    const std::int64_t at = i * n * n;
    factor_symmetric_grad(y.as<const T>() + at, gy.as<const T>() + at, n, ga.as<T>() + at);
  });
}

[[maybe_unused]] const bool registered =
    linalg_kernels.add(0, {inverse_cpu, determinant_cpu, cholesky_cpu, cholesky_grad_cpu});

}  // namespace
}  // namespace renga
