#include "ops/matmul/matmul.h"

#include <dnnl.h>

#include <algorithm>
#include <array>
#include <span>

#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "devices/single_thread.h"
#include "ops/matmul/cpu/bfloat16_matmul.h"
#include "ops/matmul/cpu/bfloat16_products.h"
#include "ops/matmul/cpu/blocking.h"
#include "ops/matmul/cpu/few_rows.h"
#include "ops/matmul/cpu/matrix.h"
#include "ops/matmul/cpu/stacked_rows.h"
#include "ops/matmul/cpu/weight_blocks.h"
#include "ops/matmul/cpu/weight_panels.h"
#include "ops/matmul/linear.h"
#include "ops/matmul/packed_weight_cache.h"
#include "ops/matmul/precision.h"
#include "tensor/views.h"

namespace renga {
namespace {

// Products of so few pairs of numbers are computed at once: looking at the layout would take as
// long.
constexpr std::int64_t kSmall = 256;

// c (+)= a b of single matrices.
template <class T>
void multiply_small(const Array& a, const Array& b, const Array& c, bool accumulate) {
  const std::int64_t item = sizeof(T), m = c.shape(0), n = c.shape(1), inner = a.shape(1);
  const std::int64_t a_down = a.strides()[0] / item, a_across = a.strides()[1] / item;
  const std::int64_t b_down = b.strides()[0] / item, b_across = b.strides()[1] / item;
  const T *left = a.as<T>(), *right = b.as<T>();
  T* out = c.as<T>();
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      T total = accumulate ? out[i * n + j] : T(0);
      for (std::int64_t k = 0; k < inner; ++k) {
        total += left[i * a_down + k * a_across] * right[k * b_down + j * b_across];
      }
      out[i * n + j] = total;
    }
  }
}

// c (+)= a b by rows of b: the inner loop runs over contiguous elements of b and c.
template <class T>
void multiply_rows(const T* a, std::int64_t down, std::int64_t across, const T* b, std::int64_t ldb,
                   T* c, const Sizes& size, bool accumulate, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kDepth = 128;
  for (std::int64_t i = begin; i < end; ++i) {
    if (!accumulate) std::fill_n(c + i * size.n, size.n, T(0));
  }
  for (std::int64_t k0 = 0; k0 < size.k; k0 += kDepth) {
    const std::int64_t k1 = std::min(size.k, k0 + kDepth);
    for (std::int64_t i = begin; i < end; ++i) {
      T* __restrict out = c + i * size.n;
      for (std::int64_t k = k0; k < k1; ++k) {
        const T factor = a[i * down + k * across];
        const T* __restrict row = b + k * ldb;
        for (std::int64_t j = 0; j < size.n; ++j) out[j] += factor * row[j];
      }
    }
  }
}

// One product of a stack; b is not transposed.
template <class T>
void generic_gemm(const Matrix& a, const Matrix& b, T* c, std::int64_t batch, const Sizes& size,
                  bool accumulate, bool threads) {
  const std::int64_t down = a.transposed ? 1 : a.leading, across = a.transposed ? a.leading : 1;
  const auto rows = [&](std::int64_t begin, std::int64_t end) {
    multiply_rows<T>(a.at<T>(batch), down, across, b.at<T>(batch), b.leading, c, size, accumulate,
                     begin, end);
  };
  if (threads) return parallel_for(size.m, size.n * size.k, rows);
  rows(0, size.m);
}

// A block of a product, on one thread: the bits of a call on several depend on their number.
void sgemm(const Matrix& a, const float* left, const Matrix& b, const float* right, float* c,
           std::int64_t ldc, const Sizes& size, bool accumulate) {
  const SingleThread alone;
  // A dense column is a row, too, of which oneDNN reads more at once.
  const bool is_row = size.n == 1 && !b.transposed && b.leading == 1;
  dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed || is_row ? 'T' : 'N', size.m, size.n, size.k,
             1.f, left, a.leading, right, is_row ? size.k : b.leading, accumulate ? 1.f : 0.f, c,
             ldc);
}

// One product of a stack.
void float_gemm(const Matrix& a, const Matrix& b, float* c, std::int64_t batch, const Sizes& size,
                bool accumulate) {
  sgemm(a, a.at<float>(batch), b, b.at<float>(batch), c, size.n, size, accumulate);
}

const float* element(const Matrix& x, std::int64_t row, std::int64_t column) {
  return x.at<float>(0) + (x.transposed ? column * x.leading + row : row * x.leading + column);
}

LeftRows rows_of(const Matrix& a, const Sizes& size) {
  return {a.at<float>(0), a.transposed ? 1 : a.leading, a.transposed ? a.leading : 1, size.m};
}

WeightRows weight_rows(const Matrix& b, const Sizes& size) {
  return {b.at<float>(0), b.leading, size.n, size.k};
}

WeightColumns weight_columns(const Matrix& b, const Sizes& size) {
  return {b.at<float>(0), b.leading, size.n, size.k};
}

// Whether the rows of a product's left operand are so few that packing would take longer than the
// product. Up to four rows, oneDNN is as good where the weights stay in the second-level cache.
bool has_few_rows(const Sizes& size) {
  return size.m < 20 && size.n * size.k >= (size.m > 4 ? 1 << 14 : 1 << 17);
}

// A product + addend, if one of renga's own kernels is best; `panels` are those of the right
// operand, or undefined.
bool multiply_rows(const Matrix& a, const Matrix& b, float* c, const Sizes& size,
                   const Addend& addend, const Array& panels) {
  // These kernels divide the columns among threads.
  constexpr std::int64_t kLeastColumns = 256;
  if (size.m == 1 && size.n < kLeastColumns) return false;
  const LeftRows rows = rows_of(a, size);
  if (!b.transposed) {
    if (gains_by_columns(size.m, size.n * size.k)) {
      multiply_by_panels(rows, weight_columns(b, size), panels, c, addend);
      return true;
    }
    if (!a.transposed || !share_cache_sets(a.leading)) return false;
    if (!gains_by_stacked_rows(size.m, size.n, size.k)) return false;
    StackedRows left{{}, size.m}, right{{}, size.n};
    left.add(a.at<float>(0), a.leading, size.k);
    right.add(b.at<float>(0), b.leading, size.k);
    multiply_stacked_rows(left, right, c, addend);
    return true;
  }
  const WeightRows weights = weight_rows(b, size);
  if (has_few_rows(size)) {
    multiply_few_rows(rows, weights, c, addend);
    return true;
  }
  if (gains_by_panels(size.m, size.n * size.k)) {
    multiply_by_panels(rows, weights, panels, c, addend);
    return true;
  }
  if (!gains_by_blocks(rows, weights)) return false;
  multiply_by_blocks(rows, weights, c, addend);
  return true;
}

// Likewise, also if `b` is a single column, which is the row of a product with the transposed `a`.
bool multiply_rows_or_column(const Matrix& a, const Matrix& b, float* c, const Sizes& size,
                             bool accumulate) {
  const Addend addend{accumulate ? c : nullptr, accumulate ? size.n : 0};
  if (size.n > 1 || size.m == 1) return multiply_rows(a, b, c, size, addend, {});
  Matrix row = b, weights = a;
  row.transposed = !row.transposed;
  weights.transposed = !weights.transposed;
  return multiply_rows(row, weights, c, {1, size.m, size.k}, addend, {});
}

MatmulBlocks blocks_of(const Matrix& a, const Matrix& b, const Sizes& size) {
  const auto [m, n, k] = size;
  if (std::min({m, n, k}) > 1) return matmul_blocks(m, n, k);
  return vector_blocks(m, n, k, m == 1 ? b.transposed : !a.transposed);
}

// A single product, in blocks on all threads.
void blocked_float_gemm(const Matrix& a, const Matrix& b, float* c, const Sizes& size,
                        bool accumulate) {
  const MatmulBlocks blocks = blocks_of(a, b, size);
  const std::int64_t each = size.m * size.n, block_count = blocks.count() * blocks.depth;
  if (block_count == 1) return float_gemm(a, b, c, 0, size, accumulate);
  // The products of all blocks along the depth but the first.
  const Array sums = empty({(blocks.depth - 1) * each}, Dtype::float32);
  // Counts a vector of products as one operation.
  const std::int64_t cost = size.m * size.n * size.k / (8 * block_count);
  parallel_for(block_count, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t term = i / blocks.count(), block = i % blocks.count();
      const std::int64_t row = block / blocks.columns, column = block % blocks.columns;
      const std::int64_t m = block_begin(size.m, blocks.rows, row);
      const std::int64_t n = block_begin(size.n, blocks.columns, column);
      const std::int64_t k = block_begin(size.k, blocks.depth, term);
      const Sizes block_size{block_begin(size.m, blocks.rows, row + 1) - m,
                             block_begin(size.n, blocks.columns, column + 1) - n,
                             block_begin(size.k, blocks.depth, term + 1) - k};
      if (block_size.m == 0 || block_size.n == 0) continue;
      float* const to = term == 0 ? c : sums.as<float>() + (term - 1) * each;
      sgemm(a, element(a, m, k), b, element(b, k, n), to + m * size.n + n, size.n, block_size,
            accumulate && term == 0);
    }
  });
  for (std::int64_t term = 1; term < blocks.depth; ++term) {
    const float* const from = sums.as<float>() + (term - 1) * each;
    parallel_for(each, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) c[i] += from[i];
    });
  }
}

template <class T>
void gemm(const Array& a, const Array& b, const Array& c, bool accumulate) {
  if (c.ndim() == 2 && c.size() * a.shape(1) <= kSmall) {
    return multiply_small<T>(a, b, c, accumulate);
  }
  const Matrix ma = as_matrix(a);
  Matrix mb = as_matrix(b);
  if (!std::is_same_v<T, float> && mb.transposed) mb = as_matrix(contiguous(b));
  const Sizes size{c.shape(c.ndim() - 2), c.shape(c.ndim() - 1), a.shape(a.ndim() - 1)};
  const std::int64_t each = size.m * size.n;
  const std::int64_t batch = each == 0 ? 0 : c.size() / each;
  const std::int64_t work = each * size.k;
  // Below about 20 x 20 x 20 the set-up of a BLAS call costs more than the product.
  const bool tiny = work < 8192 && !mb.transposed;
  if constexpr (std::is_same_v<T, float>) {
    if (batch == 1 && multiply_rows_or_column(ma, mb, c.as<float>(), size, accumulate)) return;
    if (batch == 1 && !tiny) {
      return blocked_float_gemm(ma, mb, c.as<float>(), size, accumulate);
    }
  }
  parallel_for(batch, batch > 1 ? work : 0, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      T* out = c.as<T>() + i * each;
      if constexpr (std::is_same_v<T, float>) {
        if (!tiny) {
          float_gemm(ma, mb, out, i, size, accumulate);
          continue;
        }
      }
      generic_gemm<T>(ma, mb, out, i, size, accumulate, batch == 1);
    }
  });
}

// Computed in float32.
void multiply_in_float32(const Array& a, const Array& b, const Array& c, bool accumulate) {
  const bool in_place = c.dtype() == Dtype::float32;
  const Array wide = in_place     ? c
                     : accumulate ? cast(c, Dtype::float32)
                                  : empty(c.shape(), Dtype::float32);
  gemm<float>(cast(a, Dtype::float32), cast(b, Dtype::float32), wide, accumulate);
  if (!in_place) copy(wide, c);
}

// The precision of so many products: bfloat16 ones, and three of them each, only where that is
// faster.
Precision precision_of(std::int64_t products, bool all_float32) {
  // Below this number of products, a primitive's set-up costs more than float32 products.
  constexpr std::int64_t kLeastProducts = 1 << 18;
  const Precision precision = all_float32 ? compute_precision() : Precision::medium;
  const bool is_faster = precision == Precision::medium ? bfloat16_is_faster()
                         : precision == Precision::high ? bf16x3_is_faster()
                                                        : false;
  return products >= kLeastProducts && is_faster ? precision : Precision::highest;
}

bool are_float32(const Array& a, const Array& b, const Array& c) {
  return a.dtype() == Dtype::float32 && b.dtype() == Dtype::float32 && c.dtype() == Dtype::float32;
}

// Of the dtypes that products may mix.
bool are_activations(std::initializer_list<Array> arrays) {
  return std::ranges::all_of(arrays, [](const Array& x) {
    return x.dtype() == Dtype::bfloat16 || x.dtype() == Dtype::float32;
  });
}

// For activations.
void multiply_activations(const Array& a, const Array& b, const Array& c, bool accumulate) {
  const std::int64_t rows = a.shape(a.ndim() - 2), columns = b.shape(b.ndim() - 1);
  const bool all_float32 = are_float32(a, b, c);
  switch (precision_of(rows * columns * a.shape(a.ndim() - 1), all_float32)) {
    case Precision::medium:
      return multiply_bfloat16(a, b, {}, c, accumulate);
    case Precision::high:
      return multiply_bf16x3(a, b, c, accumulate);
    case Precision::highest:
      return all_float32 ? gemm<float>(a, b, c, accumulate)
                         : multiply_in_float32(a, b, c, accumulate);
  }
}

void matmul_cpu(const Array& a, const Array& b, const Array& c, bool accumulate) {
  const GilRelease work(c.size() * a.shape(a.ndim() - 1));
  if (are_activations({c})) {
    return multiply_activations(a, b, c, accumulate);
  }
  visit_dtype(c.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_half<T>) {
      multiply_in_float32(a, b, c, accumulate);
    } else if constexpr (std::is_same_v<T, bool>) {
      const Array wide = empty(c.shape(), Dtype::int64);
      gemm<std::int64_t>(cast(a, Dtype::int64), cast(b, Dtype::int64), wide, false);
      copy(wide, c);
    } else if constexpr (std::is_integral_v<T> && sizeof(T) >= sizeof(int)) {
      gemm<std::make_unsigned_t<T>>(a, b, c, accumulate);  // only unsigned ones may wrap around
    } else if constexpr (std::is_integral_v<T>) {
      gemm<std::make_signed_t<T>>(a, b, c, accumulate);  // whose products are ints and in range
    } else {
      gemm<T>(a, b, c, accumulate);
    }
  });
}

// The panels of weights for a product that multiply_rows() computes by them; undefined where they
// are not kept yet.
Array kept_panels(const Matrix& b, const Sizes& size, PackedWeightCache& cache) {
  const PackedWeightCache::Key key{size.n, size.k, b.leading, b.transposed};
  if (b.transposed) {
    if (!gains_by_panels(size.m, size.n * size.k)) return {};
    return cache.get(key, [&] { return pack_panels(weight_rows(b, size)); });
  }
  // Columns that are multiplied where they are take but a tenth longer.
  constexpr std::int64_t kManyUses = 16;
  if (!gains_by_columns(size.m, size.n * size.k)) return {};
  const auto pack = [&] { return pack_panels(weight_columns(b, size)); };
  return cache.get(key, pack, kManyUses);
}

// y = x wt + b, if all are float32 and one of renga's own kernels is best: these add the bias.
bool multiply_floats(const Array& x, const Array& wt, const Array& b, const Array& y,
                     PackedWeightCache* cache) {
  const Sizes size{x.shape(0), wt.shape(1), x.shape(1)};
  const std::int64_t products = y.size() * size.k;
  if (products <= kSmall || size.n == 1) return false;
  if (!are_float32(x, wt, y) || (b.defined() && b.dtype() != Dtype::float32)) return false;
  if (precision_of(products, true) != Precision::highest) return false;
  const GilRelease work(products);
  const Matrix left = as_matrix(x), right = as_matrix(wt);
  const Array bias = b.defined() ? contiguous(b) : b;
  const Array panels = cache == nullptr ? Array() : kept_panels(right, size, *cache);
  const Addend addend{bias.defined() ? bias.as<float>() : nullptr};
  return multiply_rows(left, right, y.as<float>(), size, addend, panels);
}

void linear_cpu(const Array& x, const Array& wt, const Array& b, const Array& y,
                PackedWeightCache* cache) {
  const std::int64_t products = y.size() * x.shape(1);
  if (are_activations({x, wt, y}) && (!b.defined() || are_activations({b})) &&
      precision_of(products, are_float32(x, wt, y)) == Precision::medium) {
    const GilRelease work(products);
    return multiply_bfloat16(x, wt, b, y, false, cache);
  }
  if (multiply_floats(x, wt, b, y, cache)) return;
  if (b.defined()) copy(broadcast_view("linear", b, y.shape()), y);
  matmul_cpu(x, wt, y, b.defined());
}

StackedRows stack(std::span<const Array> arrays) {
  StackedRows stacked{{}, arrays[0].shape(1)};
  for (const Array& x : arrays) {
    stacked.add(x.as<float>(), x.strides()[0] / x.itemsize(), x.shape(0));
  }
  return stacked;
}

void weight_gradient_cpu(std::span<const Array> gys, std::span<const Array> xs, const Array& c) {
  const StackedRows gy = stack(gys), x = stack(xs);
  const GilRelease work(c.size() * static_cast<std::int64_t>(x.rows.size()));
  multiply_stacked_rows(gy, x, c.as<float>(), {});
}

[[maybe_unused]] const bool registered = matmul_kernels.add(0, {matmul_cpu}) &&
                                         linear_kernels.add(0, {linear_cpu}) &&
                                         weight_gradient_kernels.add(0, {weight_gradient_cpu});

}  // namespace
}  // namespace renga
