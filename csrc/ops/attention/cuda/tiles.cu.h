// Tiles of 64 queries against 64 keys, for blocks of 256 threads: thread (ty, tx) has rows
// ty + 16 i and columns tx + 16 j. Operands pass through shared memory in parts. All threads of a
// block call these functions; sums have one order.
#pragma once

#include "ops/attention/cuda/scores.cu.h"

namespace renga::attention {

inline constexpr int kTile = 64, kSide = 16, kEach = kTile / kSide;
inline constexpr int kPart = 32;          // columns or rows of an operand that are staged at once
inline constexpr int kPitch = kPart + 1;  // columns of threads are in different banks
inline constexpr int kStaged = 2 * kTile * kPitch, kWeightPitch = kTile + 1;
inline constexpr std::size_t kSharedBytes = (kStaged + kTile * kWeightPitch) * sizeof(float);

// A thread's share of a tile.
using Share = float[kEach][kEach];

struct Lane {
  int tx, ty;
  __device__ Lane()
      : tx(static_cast<int>(threadIdx.x) % kSide), ty(static_cast<int>(threadIdx.x) / kSide) {}
  __device__ int row(int i) const { return ty + kSide * i; }
  __device__ int column(int j) const { return tx + kSide * j; }
};

// The factors of the dropout of a thread's keys in a tile: a word for each.
__device__ inline void dropout_factors(const Scores& scores, std::int64_t head, std::int64_t query,
                                       std::int64_t key, int tx, float (&values)[kEach]) {
  static_assert(kTile == kPhiloxBlock && kSide == philox_constants::kCounters);
  for (float& value : values) value = 1;
  if (scores.threshold == 0) return;
  const PhiloxWords drawn = scores.words(head, query, key, tx);
  for (int j = 0; j < kEach; ++j) {
    values[j] = drawn.words[j] >= scores.threshold ? scores.kept_scale : 0.0f;
  }
}

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

}  // namespace renga::attention
