// Tiles of 64 queries against 64 keys, for blocks of 256 threads: thread (ty, tx) has rows
// ty + 16 i and columns tx + 16 j. Operands pass through shared memory in parts. All threads of a
// block call these functions; sums have one order.
#pragma once

#include <cmath>
#include <limits>
#include <utility>

#include "devices/cuda/launch.h"
#include "devices/cuda/recording.h"
#include "ops/attention/attention.h"
#include "ops/random/philox.h"

namespace renga::attention {

inline constexpr int kTile = 64, kSide = 16, kEach = kTile / kSide;
inline constexpr int kPart = 32;          // columns or rows of an operand that are staged at once
inline constexpr int kPitch = kPart + 1;  // columns of threads are in different banks
inline constexpr int kStaged = 2 * kTile * kPitch, kWeightPitch = kTile + 1;
inline constexpr std::size_t kSharedBytes = (kStaged + kTile * kWeightPitch) * sizeof(float);

// A thread's share of a tile.
using Share = float[kEach][kEach];

// Calls body(0) to body(n - 1), unrolled, so that arrays indexed by it are in registers.
template <int n, class Body>
__device__ void unrolled(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) { (body(i), ...); }
  (std::make_integer_sequence<int, n>());
}

struct Lane {
  int tx, ty;
  __device__ Lane()
      : tx(static_cast<int>(threadIdx.x) % kSide), ty(static_cast<int>(threadIdx.x) / kSide) {}
  __device__ int row(int i) const { return ty + kSide * i; }
  __device__ int column(int j) const { return tx + kSide * j; }
};

// The rows of one head.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t step, rows, columns;
  // Zero outside.
  __device__ float load(std::int64_t row, std::int64_t column) const {
    return row < rows && column < columns ? static_cast<float>(data[row * step + column]) : 0.0f;
  }
  __device__ void store(std::int64_t row, std::int64_t column, float value) const {
    if (row < rows && column < columns) data[row * step + column] = T(value);
  }
};

// An array (N, H, rows, columns), contiguous along the last axis.
template <class T>
struct Heads {
  explicit Heads(const Array& x)
      : data(x.as<T>()),
        heads(x.shape(1)),
        rows(x.shape(2)),
        columns(x.shape(3)),
        sample_step(x.strides()[0] / x.itemsize()),
        head_step(x.strides()[1] / x.itemsize()),
        row_step(x.strides()[2] / x.itemsize()) {}
  __device__ HeadRows<T> head(std::int64_t index) const {
    return {data + index / heads * sample_step + index % heads * head_step, row_step, rows,
            columns};
  }
  T* data;
  std::int64_t heads, rows, columns, sample_step, head_step, row_step;
};

// Scores tells what becomes of the products of queries and keys.
struct Scores {
  explicit Scores(const Attention& a)
      : heads(a.q.shape(1)),
        queries(a.q.shape(2)),
        keys(a.k.shape(2)),
        scale(static_cast<float>(a.scale)),
        is_causal(a.is_causal),
        seed(a.seed),
        threshold(dropout_threshold(a.dropout)),
        kept_scale(static_cast<float>(1 / (1 - a.dropout))) {
    if (!a.mask.defined()) return;
    mask = a.mask.data();
    mask_is_bool = a.mask.dtype() == Dtype::bool_;
    std::copy(a.mask.strides().begin(), a.mask.strides().end(), mask_steps);
  }

  // Minus infinity for a key that the query does not read.
  __device__ float score(float product, std::int64_t head, std::int64_t query,
                         std::int64_t key) const {
    constexpr float nothing = -std::numeric_limits<float>::infinity();
    if (query >= queries || key >= keys || (is_causal && key > query)) return nothing;
    const float scaled = product * scale;
    if (mask == nullptr) return scaled;
    const std::byte* const term = mask + head / heads * mask_steps[0] +
                                  head % heads * mask_steps[1] + query * mask_steps[2] +
                                  key * mask_steps[3];
    if (!mask_is_bool) return scaled + *reinterpret_cast<const float*>(term);
    return *reinterpret_cast<const bool*>(term) ? scaled : nothing;
  }

  // The factors of the dropout of a thread's keys in a tile: a word for each.
  __device__ void factors(std::int64_t head, std::int64_t query, std::int64_t key, int tx,
                          float (&values)[kEach]) const {
    static_assert(kTile == kPhiloxBlock && kSide == philox_constants::kCounters);
    for (float& value : values) value = 1;
    if (threshold == 0) return;
    const std::int64_t blocks = (keys + kPhiloxBlock - 1) / kPhiloxBlock;
    const std::int64_t block = (head * queries + query) * blocks + key / kPhiloxBlock;
    const PhiloxWords drawn =
        philox_words(seed.get(), static_cast<std::uint64_t>(block * kSide + tx));
    for (int j = 0; j < kEach; ++j) values[j] = drawn.words[j] >= threshold ? kept_scale : 0.0f;
  }

  // The keys that queries below `end` read are below it.
  __device__ std::int64_t last_key(std::int64_t end) const {
    return is_causal && end < keys ? end : keys;
  }

  std::int64_t heads, queries, keys;
  float scale;
  bool is_causal, mask_is_bool = false;
  cuda::Seed seed;
  std::uint32_t threshold;
  float kept_scale;
  const std::byte* mask = nullptr;
  std::int64_t mask_steps[4] = {};  // in bytes
};

template <class T>
__device__ void stage(const HeadRows<const T>& x, std::int64_t row, int rows, std::int64_t column,
                      int columns, int pitch, float* staged) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += cuda::kThreads) {
    const int r = i / columns, c = i % columns;
    staged[r * pitch + c] = x.load(row + r, column + c);
  }
}

// products[i][j] = left[row i] right[row j]^T, the first rows being `left_row` and `right_row`.
template <class T>
__device__ void multiply_rows(const HeadRows<const T>& left, std::int64_t left_row,
                              const HeadRows<const T>& right, std::int64_t right_row, float* staged,
                              Share& products) {
  const Lane lane;
  float* const staged_right = staged + kTile * kPitch;
  for (auto& row : products) {
    for (float& product : row) product = 0;
  }
  for (std::int64_t column = 0; column < left.columns; column += kPart) {
    stage(left, left_row, kTile, column, kPart, kPitch, staged);
    stage(right, right_row, kTile, column, kPart, kPitch, staged_right);
    __syncthreads();
    for (int c = 0; c < kPart; ++c) {
      float a[kEach], b[kEach];
      for (int i = 0; i < kEach; ++i) a[i] = staged[lane.row(i) * kPitch + c];
      for (int j = 0; j < kEach; ++j) b[j] = staged_right[lane.column(j) * kPitch + c];
      for (int i = 0; i < kEach; ++i) {
        for (int j = 0; j < kEach; ++j) products[i][j] += a[i] * b[j];
      }
    }
    __syncthreads();
  }
}

// The block's weights (kTile, kTile) in shared memory are those of `values`.
__device__ inline void put_weights(const Share& values, float* weights) {
  const Lane lane;
  for (int i = 0; i < kEach; ++i) {
    for (int j = 0; j < kEach; ++j) {
      weights[lane.row(i) * kWeightPitch + lane.column(j)] = values[i][j];
    }
  }
}

// sums[i][c] += weights[row i] x[:, column c], or weights^T: rows of x from `row` on, columns from
// `column` on.
template <bool is_transposed, int columns, class T>
__device__ void accumulate(const float* weights, const HeadRows<const T>& x, std::int64_t row,
                           std::int64_t column, float* staged, float (&sums)[kEach][columns]) {
  constexpr int pitch = columns * kSide;
  static_assert(kPart * pitch <= kStaged);
  const Lane lane;
  for (int part = 0; part < kTile; part += kPart) {
    stage(x, row + part, kPart, column, pitch, pitch, staged);
    __syncthreads();
    for (int s = 0; s < kPart; ++s) {
      const int k = part + s;
      float a[kEach], b[columns];
      for (int i = 0; i < kEach; ++i) {
        a[i] = weights[is_transposed ? k * kWeightPitch + lane.row(i)
                                     : lane.row(i) * kWeightPitch + k];
      }
      for (int c = 0; c < columns; ++c) b[c] = staged[s * pitch + lane.column(c)];
      for (int i = 0; i < kEach; ++i) {
        for (int c = 0; c < columns; ++c) sums[i][c] += a[i] * b[c];
      }
    }
    __syncthreads();
  }
}

// The fold of the values of the threads that share rows; all of them get it.
template <class Fold>
__device__ float fold_row(float value, const Fold& fold) {
  for (int lanes = 1; lanes < kSide; lanes *= 2) {
    value = fold(value, __shfl_xor_sync(0xffffffffu, value, lanes));
  }
  return value;
}

}  // namespace renga::attention
