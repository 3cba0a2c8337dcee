#include "ops/matmul/matmul.h"

#include <dnnl.h>

#include <algorithm>

#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "devices/single_thread.h"
#include "ops/matmul/cpu/bfloat16_matmul.h"
#include "ops/matmul/cpu/blocking.h"
#include "ops/matmul/cpu/dot_product.h"
#include "ops/matmul/cpu/float_kernels.h"
#include "ops/matmul/cpu/float_products.h"
#include "ops/matmul/cpu/gemm.h"
#include "ops/matmul/cpu/selection.h"
#include "simd/first_floats.h"
#include "simd/vector.h"
#include "tensor/streaming.cpu.h"

namespace renga {
namespace {

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

// c (+)= a b, of which a row has few numbers, which stay in registers.
template <class T>
void multiply_narrow_rows(const Strided<T>& a, const T* b, std::int64_t ldb, T* c,
                          const Sizes& size, bool accumulate) {
  simd::dispatch_for<T>([&, c ](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using L = simd::Vector<Target, T>;
    constexpr int terms = 4;  // as each addition waits for the one before
    for (std::int64_t i = 0; i < size.m; ++i) {
      for (std::int64_t j = 0; j < size.n; j += L::width) {
        const auto n = static_cast<int>(std::min<std::int64_t>(L::width, size.n - j));
        const auto product_at = [&](std::int64_t k) __attribute__((always_inline)) {
          const T* const factor = a.data + i * a.row_step + k * a.column_step;
          return L::broadcast(factor) * simd::load_first<Target>(b + k * ldb + j, n);
        };
        typename L::V sums[terms] = {};
        std::int64_t k = 0;
        for (; k + terms <= size.k; k += terms) {
#pragma GCC unroll 4
          for (int t = 0; t < terms; ++t) sums[t] += product_at(k + t);
        }
        for (; k < size.k; ++k) sums[0] += product_at(k);
        T* const to = c + i * size.n + j;
        typename L::V sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        if (accumulate) sum += simd::load_first<Target>(to, n);
        simd::store_first<Target>(sum, to, n);
      }
    }
  });
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

// One product of a stack, of a column and a row, which threads share out.
template <class T>
void multiply_outer(const Matrix& a, const Matrix& b, T* c, std::int64_t batch, const Sizes& size,
                    bool accumulate) {
  const bool is_column = size.n == 1 && size.m > 1;  // the row of the transposed product
  const Matrix &left = is_column ? b : a, &right = is_column ? a : b;
  const std::int64_t rows = is_column ? 1 : size.m, columns = is_column ? size.m : size.n;
  const auto step_of = [](const Matrix& x, bool is_row) {
    return x.transposed == is_row ? x.leading : 1;
  };
  const std::int64_t down = step_of(left, is_column), across = step_of(right, !is_column);
  const T *factors = left.at<T>(batch), *numbers = right.at<T>(batch);
  const bool streams = !accumulate && across == 1 && starts_cache_line(c) &&
                       columns * std::int64_t{sizeof(T)} % 64 == 0 &&
                       pays_streaming(rows * columns * std::int64_t{sizeof(T)} * 2);
  const auto multiply_row = [=](std::int64_t i, std::int64_t begin, std::int64_t end) {
    const T factor = factors[i * down];
    T* const to = c + i * columns;
    if (streams) {
      constexpr std::int64_t kRun = 64;
      alignas(64) T run[kRun];
      for (std::int64_t j = begin; j < end; j += kRun) {
        const std::int64_t n = std::min(kRun, end - j);
        for (std::int64_t k = 0; k < n; ++k) run[k] = factor * numbers[j + k];
        stream(run, to + j, n);
      }
    } else if (accumulate) {
      for (std::int64_t j = begin; j < end; ++j) to[j] += factor * numbers[j * across];
    } else if (across == 1) {
      for (std::int64_t j = begin; j < end; ++j) to[j] = factor * numbers[j];
    } else {
      for (std::int64_t j = begin; j < end; ++j) to[j] = factor * numbers[j * across];
    }
  };
  if (rows == 1) {
    return parallel_for(columns, 1, [&](std::int64_t begin, std::int64_t end) {
      multiply_row(0, begin, end);
      if (streams) finish_streaming();
    });
  }
  parallel_for(rows, columns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) multiply_row(i, 0, columns);
    if (streams) finish_streaming();
  });
}

// A block of a product, on one thread: the bits of a call on several depend on their number.
void sgemm(const Matrix& a, const float* left, const Matrix& b, const float* right, float* c,
           std::int64_t ldc, const Sizes& size, bool accumulate) {
  // A dense column is a row, too, of which oneDNN reads more at once.
  const bool is_row = size.n == 1 && !b.transposed && b.leading == 1;
  const bool has_rows = (!a.transposed || a.leading == 1) && (b.transposed || is_row);
  if (size.m == 1 && size.n == 1 && has_rows) {
    *c = (accumulate ? *c : 0) + dot_product(left, right, size.k);
    return;
  }
  const SingleThread alone;
  dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed || is_row ? 'T' : 'N', size.m, size.n, size.k,
             1.f, left, a.leading, right, is_row ? size.k : b.leading, accumulate ? 1.f : 0.f, c,
             ldc);
}

// One product of a stack.
void float_gemm(const Matrix& a, const Matrix& b, float* c, std::int64_t batch, const Sizes& size,
                bool accumulate) {
  sgemm(a, a.at<float>(batch), b, b.at<float>(batch), c, size.n, size, accumulate);
}

void double_gemm(const Matrix& a, const Matrix& b, double* c, std::int64_t batch, const Sizes& size,
                 bool accumulate, bool threads) {
  const auto strided = [batch](const Matrix& x) {
    return Strided<double>{x.at<double>(batch), x.transposed ? 1 : x.leading,
                           x.transposed ? x.leading : 1};
  };
  const Strided<double> left = strided(a), right = strided(b);
  constexpr std::int64_t kRows = 96;
  const auto rows = [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t i = begin * kRows, height = std::min(end * kRows, size.m) - i;
    gemm(left.from(i, 0), right, c + i * size.n, size.n, height, size.n, size.k, 1.0, accumulate);
  };
  if (threads) return parallel_for(divide_up(size.m, kRows), kRows * size.n * size.k, rows);
  rows(0, divide_up(size.m, kRows));
}

// `count` contiguous vectors, `step` apart.
struct Vectors {
  const double* data;
  std::int64_t step, count;
};

// The dot product of row i and vector j, both of k numbers, is c[i * down + j * across].
void multiply_vectors(const Vectors& rows, const Vectors& vectors, std::int64_t k, double* c,
                      std::int64_t down, std::int64_t across, bool accumulate, bool threads) {
  const auto multiply = [=](std::int64_t begin, std::int64_t end) {
    simd::dispatch_for<double>([=](auto target) __attribute__((always_inline)) {
      using L = simd::Vector<decltype(target), double>;
      for (std::int64_t i = begin; i < end; ++i) {
        const double* const row = rows.data + i * rows.step;
        for (std::int64_t j = 0; j < vectors.count; ++j) {
          const double* const vector = vectors.data + j * vectors.step;
          typename L::V sums[4] = {};
          std::int64_t p = 0;
          for (; p + 4 * L::width <= k; p += 4 * L::width) {
#pragma GCC unroll 4
            for (int v = 0; v < 4; ++v) {
              sums[v] += L::load(row + p + v * L::width) * L::load(vector + p + v * L::width);
            }
          }
          double total = L::sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
          for (; p < k; ++p) total += row[p] * vector[p];
          double& to = c[i * down + j * across];
          to = accumulate ? to + total : total;
        }
      }
    });
  };
  if (threads) return parallel_for(rows.count, vectors.count * k, multiply);
  multiply(0, rows.count);
}

// One product of a stack, of few numbers; not of the transposes of both.
void small_gemm(const Matrix& a, const Matrix& b, float* c, std::int64_t batch, const Sizes& size,
                bool accumulate) {
  const auto [m, n, k] = size;
  const float *left = a.at<float>(batch), *right = b.at<float>(batch);
  const bool is_dense_column = n == 1 && (b.transposed || b.leading == 1);
  if (is_dense_column) {  // a row, of the transposed product
    const LeftRows row{right, 0, 1, 1};
    a.transposed || (k == 1 && a.leading == 1)
        ? multiply_small_product(row, WeightColumns{left, a.leading, m, k}, c, accumulate)
        : multiply_small_product(row, WeightRows{left, a.leading, m, k}, c, accumulate);
    return;
  }
  const LeftRows rows{left, a.transposed ? 1 : a.leading, a.transposed ? a.leading : 1, m};
  b.transposed ? multiply_small_product(rows, WeightRows{right, b.leading, n, k}, c, accumulate)
               : multiply_small_product(rows, WeightColumns{right, b.leading, n, k}, c, accumulate);
}

const float* element(const Matrix& x, std::int64_t row, std::int64_t column) {
  return x.at<float>(0) + (x.transposed ? column * x.leading + row : row * x.leading + column);
}

LeftRows rows_of(const Matrix& a, std::int64_t rows) {
  return {a.at<float>(0), a.transposed ? 1 : a.leading, a.transposed ? a.leading : 1, rows};
}

template <class Weights>
Weights weights_of(const Matrix& b, const Sizes& size) {
  return {b.at<float>(0), b.leading, size.n, size.k};
}

// With a cache, the panels may be kept there.
template <class Weights>
void multiply_by_kept_panels(const LeftRows& a, const Matrix& b, float* c, const Sizes& size,
                             const Addend& addend, PackedWeightCache* cache) {
  const auto weights = weights_of<Weights>(b, size);
  Array panels;
  if (cache != nullptr) {
    panels = cache->get(
        {size.n, size.k, b.leading, b.transposed}, [&] { return pack_panels(weights); },
        uses_worth_packing(b.transposed));
  }
  multiply_by_panels(a, weights, panels, c, addend);
}

// c = aᵀ b + addend, where `a` is the transpose.
void multiply_transposed(const Matrix& a, const Matrix& b, float* c, const Sizes& size,
                         const Addend& addend) {
  StackedRows left{{}, size.m}, right{{}, size.n};
  left.add(a.at<float>(0), a.leading, size.k);
  right.add(b.at<float>(0), b.leading, size.k);
  multiply_stacked_rows(left, right, c, addend);
}

// A product of one pair + addend by one of renga's own kernels.
void multiply_by_own(FloatKernel kernel, const Matrix& a, const Matrix& b, float* c,
                     const Sizes& size, const Addend& addend, PackedWeightCache* cache) {
  const LeftRows rows = rows_of(a, size.m);
  switch (kernel) {
    case FloatKernel::one_column: {
      const LeftRows column{b.at<float>(0), 0, b.transposed ? 1 : b.leading, 1};
      return multiply_few_rows(column, {a.at<float>(0), a.leading, size.m, size.k}, c, addend);
    }
    case FloatKernel::few_rows:
      return multiply_few_rows(rows, weights_of<WeightRows>(b, size), c, addend);
    case FloatKernel::panels:
      return b.transposed ? multiply_by_kept_panels<WeightRows>(rows, b, c, size, addend, cache)
                          : multiply_by_kept_panels<WeightColumns>(rows, b, c, size, addend, cache);
    case FloatKernel::blocks:
      return b.transposed ? multiply_by_blocks(rows, weights_of<WeightRows>(b, size), c, addend)
                          : multiply_by_blocks(rows, weights_of<WeightColumns>(b, size), c, addend);
    case FloatKernel::stacked_rows:
      return multiply_transposed(a, b, c, size, addend);
    case FloatKernel::outer:
    case FloatKernel::registers:
    case FloatKernel::onednn:
      break;
  }
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

// Whether the product is to be added to c, which then has the bias.
bool begin_sum(const Array& c, const Epilogue& epilogue) {
  if (!epilogue.bias.defined()) return epilogue.accumulates;
  copy(broadcast_view("linear", epilogue.bias, c.shape()), c);
  return true;
}

// Calls body(i, c, is_single) for the pairs of a stack of products; threads share them out.
template <class T, class Body>
void for_each_pair(const Array& c, const Sizes& size, const Body& body) {
  const std::int64_t each = size.m * size.n, count = each == 0 ? 0 : c.size() / each;
  parallel_for(count, count > 1 ? each * size.k : 0, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i, c.as<T>() + i * each, count == 1);
  });
}

bool are_small(const Array& a, const Array& c) {
  return c.ndim() == 2 && is_small(c.size() * a.shape(1));
}

template <class T>
void multiply_by_loops(const Array& a, const Array& b, const Array& c, bool accumulate) {
  if (are_small(a, c)) return multiply_small<T>(a, b, c, accumulate);
  const Matrix left = as_matrix(a);
  Matrix right = as_matrix(b);
  const Sizes size = sizes_of(a, c);
  if constexpr (std::is_same_v<T, double>) {
    constexpr std::int64_t kFewRows = 4, kFewVectors = 4;
    const bool is_column = size.n == 1 && (right.transposed || right.leading == 1);
    const bool has_vectors = is_column || (size.m <= kFewVectors && right.transposed);
    if (size.k > 1 && has_vectors && !left.transposed) {
      return for_each_pair<T>(c, size, [&](std::int64_t i, T* to, bool is_single) {
        const Vectors rows{left.at<T>(i), left.leading, size.m};
        const Vectors columns{right.at<T>(i), right.leading, size.n};
        is_column ? multiply_vectors(rows, columns, size.k, to, 1, 0, accumulate, is_single)
                  : multiply_vectors(columns, rows, size.k, to, 1, size.n, accumulate, is_single);
      });
    }
    const bool is_flat = size.n == 1 && left.transposed;
    if (size.k > 1 && is_flat) {  // rows of the left matrix, in a product of a row
      return for_each_pair<T>(c, size, [&](std::int64_t i, T* to, bool is_single) {
        const T* const row = right.at<T>(i);
        const std::int64_t across = right.transposed ? 1 : right.leading;
        const auto columns = [&](std::int64_t begin, std::int64_t end) {
          multiply_rows<T>(row, 0, across, left.at<T>(i) + begin, left.leading, to + begin,
                           {1, end - begin, size.k}, accumulate, 0, 1);
        };
        is_single ? parallel_for(size.m, size.k, columns) : columns(0, size.m);
      });
    }
    if (size.k == 1 || size.m > kFewRows) {
      return for_each_pair<T>(c, size, [&](std::int64_t i, T* to, bool is_single) {
        size.k == 1 ? multiply_outer(left, right, to, i, size, accumulate)
                    : double_gemm(left, right, to, i, size, accumulate, is_single);
      });
    }
  }
  if (right.transposed) right = as_matrix(contiguous(b));
  if constexpr (std::is_same_v<T, double>) {
    constexpr std::int64_t kNarrow = 8;
    if (size.n <= kNarrow) {
      return for_each_pair<T>(c, size, [&](std::int64_t i, T* to, bool) {
        const Strided<T> rows{left.at<T>(i), left.transposed ? 1 : left.leading,
                              left.transposed ? left.leading : 1};
        multiply_narrow_rows(rows, right.at<T>(i), right.leading, to, size, accumulate);
      });
    }
  }
  for_each_pair<T>(c, size, [&](std::int64_t i, T* to, bool is_single) {
    generic_gemm<T>(left, right, to, i, size, accumulate, is_single);
  });
}

}  // namespace

void multiply_floats(const Array& a, const Array& b, const Array& c, const Epilogue& epilogue,
                     PackedWeightCache* cache) {
  if (are_small(a, c)) return multiply_small<float>(a, b, c, begin_sum(c, epilogue));
  const Matrix left = as_matrix(a), right = as_matrix(b);
  const Sizes size = sizes_of(a, c);
  const bool is_single = c.size() == size.m * size.n;
  const FloatKernel kernel = float_kernel(left, right, size, is_single);
  const bool takes_stacks = kernel == FloatKernel::outer || kernel == FloatKernel::registers ||
                            kernel == FloatKernel::onednn;
  if (!takes_stacks) {
    const bool reads_bias = epilogue.bias.defined() && epilogue.bias.dtype() == Dtype::float32 &&
                            kernel != FloatKernel::one_column;
    const Array bias = reads_bias ? contiguous(epilogue.bias) : Array();
    const Addend addend = reads_bias               ? Addend{bias.as<float>()}
                          : begin_sum(c, epilogue) ? Addend{c.as<float>(), size.n}
                                                   : Addend{};
    return multiply_by_own(kernel, left, right, c.as<float>(), size, addend, cache);
  }
  const bool accumulate = begin_sum(c, epilogue);
  if (kernel == FloatKernel::onednn && is_single) {
    return blocked_float_gemm(left, right, c.as<float>(), size, accumulate);
  }
  for_each_pair<float>(c, size, [&](std::int64_t i, float* to, bool) {
    switch (kernel) {
      case FloatKernel::outer:
        return multiply_outer(left, right, to, i, size, accumulate);
      case FloatKernel::registers:
        return small_gemm(left, right, to, i, size, accumulate);
      default:
        return float_gemm(left, right, to, i, size, accumulate);
    }
  });
}

namespace {

// Multiplies numbers of bfloat16 or float32.
void multiply_activations(const Array& a, const Array& b, const Array& c, const Epilogue& epilogue,
                          PackedWeightCache* cache) {
  const auto is_float32 = [](const Array& x) { return x.dtype() == Dtype::float32; };
  const bool all_float32 = is_float32(a) && is_float32(b) && is_float32(c);
  const Sizes size = sizes_of(a, c);
  switch (precision_of(size, c.size() / (size.m * size.n), all_float32)) {
    case Precision::medium:
      return multiply_bfloat16(a, b, c, epilogue, cache);
    case Precision::high:
      return multiply_bf16x3(a, b, c, begin_sum(c, epilogue));
    case Precision::highest:
      return all_float32 ? multiply_floats(a, b, c, epilogue, cache)
                         : multiply_in_float32(a, b, c, epilogue);
  }
}

void matmul_cpu(const Array& a, const Array& b, const Array& c, const Epilogue& epilogue,
                PackedWeightCache* cache) {
  if (c.size() == 0) return;
  const std::int64_t depth = a.shape(a.ndim() - 1);
  if (depth == 0) {  // the sums of no products, which oneDNN does not write
    if (!begin_sum(c, epilogue)) fill(c, 0);
    return;
  }
  const GilRelease work(c.size() * depth);
  if (c.dtype() == Dtype::bfloat16 || c.dtype() == Dtype::float32) {
    return multiply_activations(a, b, c, epilogue, cache);
  }
  if (c.dtype() == Dtype::float16) return multiply_in_float32(a, b, c, epilogue);
  const bool accumulate = begin_sum(c, epilogue);
  visit_dtype(c.dtype(), [&]<class T>(Type<T>) {
    if constexpr (std::is_same_v<T, bool>) {
      const Array wide = empty(c.shape(), Dtype::int64);
      multiply_by_loops<std::int64_t>(cast(a, Dtype::int64), cast(b, Dtype::int64), wide, false);
      copy(wide, c);
    } else if constexpr (std::is_integral_v<T> && sizeof(T) >= sizeof(int)) {
      // Only unsigned integers may wrap around.
      multiply_by_loops<std::make_unsigned_t<T>>(a, b, c, accumulate);
    } else if constexpr (std::is_integral_v<T>) {
      // Products of smaller integers are ints and in range.
      multiply_by_loops<std::make_signed_t<T>>(a, b, c, accumulate);
    } else if constexpr (std::is_same_v<T, double>) {
      multiply_by_loops<double>(a, b, c, accumulate);
    }
  });
}

StackedRows stack(std::span<const Array> arrays) {
  StackedRows stacked{{}, arrays[0].shape(1)};
  for (const Array& x : arrays) {
    stacked.add(x.as<float>(), x.strides()[0] / x.itemsize(), x.shape(0));
  }
  return stacked;
}

bool multiplies_parts_cpu(std::int64_t m, std::int64_t n, std::int64_t rows) {
  return compute_precision() == Precision::highest && multiplies_parts(m, n, rows);
}

void multiply_parts_cpu(std::span<const Array> gys, std::span<const Array> xs, const Array& c) {
  const StackedRows gy = stack(gys), x = stack(xs);
  const GilRelease work(c.size() * static_cast<std::int64_t>(x.rows.size()));
  multiply_stacked_rows(gy, x, c.as<float>(), {});
}

[[maybe_unused]] const bool registered =
    matmul_kernels.add(0, {matmul_cpu, may_keep_packed, multiplies_parts_cpu, multiply_parts_cpu});

}  // namespace
}  // namespace renga
