// Products of tiles of 16-bit floats by tensor cores, for blocks of eight warps. Each warp has 16
// rows of its own: of what it sums, and of the left operand.
#pragma once

#include "ops/attention/cuda/scores.cu.h"
#include "tensor/tensor_cores.cu.h"

namespace renga::attention {

inline constexpr int kWarps = 8, kBlockThreads = kWarps * cuda::kWarp;
inline constexpr int kMatrix = 16, kVector = 8;  // rows of a fragment, numbers that one copy moves
inline constexpr int kBlockRows = kWarps * kMatrix;

// A thread's part of a warp's sums, of `n` times 8 columns.
template <int n>
using WarpSums = cuda::Sums[n];

// The rows and columns of a thread in its block's sums: number e of part j.
struct SumsLane {
  int row_, column_;
  __device__ SumsLane()
      : row_(static_cast<int>(threadIdx.x) / cuda::kWarp * kMatrix +
             static_cast<int>(threadIdx.x) % cuda::kWarp / 4),
        column_(static_cast<int>(threadIdx.x) % 4 * 2) {}
  __device__ int row(int e) const { return row_ + e / 2 * 8; }
  __device__ int column(int j, int e) const { return column_ + 8 * j + e % 2; }
};

// Rows of `columns` numbers in shared memory. Vectors of eight numbers change their order from row
// to row, so that those of a column of eight rows are in different banks.
template <int columns>
class MatrixTile {
 public:
  static constexpr int kVectors = columns / kVector, kVectorBytes = 16;
  static constexpr int kRowBytes = kVectors * kVectorBytes;

  __device__ explicit MatrixTile(cuda::SharedAddress begin) : begin_(begin) {}
  // Tile `number` of those of so many rows that begin here.
  __device__ MatrixTile next(int number, int rows) const {
    return MatrixTile(begin_ + number * rows * kRowBytes);
  }

  // Copies `rows` rows from `begin` on, with zeros outside of x.
  template <class T>
  __device__ void load(const HeadRows<const T>& x, std::int64_t begin, int rows) const {
    for (int i = static_cast<int>(threadIdx.x); i < rows * kVectors; i += kBlockThreads) {
      const int row = i / kVectors, column = i % kVectors * kVector;
      const bool exists = begin + row < x.rows && column < x.columns;
      const T* const from = exists ? x.data + (begin + row) * x.step + column : x.data;
      cuda::copy_later(at(row, i % kVectors, 0), from, exists);
    }
  }

  // A left operand: the rows of this warp.
  __device__ void left(int column, cuda::Fragment& a) const {
    const int row = static_cast<int>(threadIdx.x) / cuda::kWarp * kMatrix;
    cuda::load_matrices(at(row + lane() % 16, lane() / 16, column / kVector), a);
  }
  // Two right operands of eight rows each, whose transposes are multiplied.
  __device__ void right(int row, int column, cuda::Fragment& b) const {
    cuda::load_matrices(at(row + lane() / 16 * 8 + lane() % 8, lane() / 8 % 2, column / kVector),
                        b);
  }
  // Two right operands of eight columns each.
  __device__ void right_columns(int row, int column, cuda::Fragment& b) const {
    cuda::load_transposed(at(row + lane() % 16, lane() / 16, column / kVector), b);
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % cuda::kWarp; }
  // Vector `vector` + `first` of a row, where `first` has no bit of `vector`: what depends on the
  // thread is computed once for all constants `first`.
  __device__ cuda::SharedAddress at(int row, int vector, int first) const {
    const int turn = kVectors < 8 ? row / (8 / kVectors) % kVectors : row % 8;
    return begin_ + row * kRowBytes + (((vector ^ turn) * kVectorBytes) ^ (first * kVectorBytes));
  }

  cuda::SharedAddress begin_;
};

// products = left right[rows from 0 on]^T.
template <class T, int n, int columns>
__device__ void multiply_rows(const MatrixTile<columns>& left, const MatrixTile<columns>& right,
                              WarpSums<n>& products) {
  for (auto& part : products) {
    for (float& sum : part) sum = 0;
  }
  unrolled<columns / kMatrix>([&](int k) {
    cuda::Fragment a;
    left.left(kMatrix * k, a);
    unrolled<n / 2>([&](int j) {
      cuda::Fragment b;
      right.right(kMatrix * j, kMatrix * k, b);
      cuda::add_product<T>(a, b[0], b[1], products[2 * j]);
      cuda::add_product<T>(a, b[2], b[3], products[2 * j + 1]);
    });
  });
}

// sums += weights x, where weights are rounded to T: they are left operands as they are.
template <class T, int n, int columns>
__device__ void accumulate(const WarpSums<n>& weights, const MatrixTile<columns>& x,
                           WarpSums<columns / 8>& sums) {
  unrolled<n / 2>([&](int k) {
    cuda::Fragment a;
    unrolled<4>([&](int word) {
      const float* const pair = weights[2 * k + word / 2] + word % 2 * 2;
      a[word] = cuda::pack<T>(pair[0], pair[1]);
    });
    unrolled<columns / kMatrix>([&](int c) {
      cuda::Fragment b;
      x.right_columns(kMatrix * k, kMatrix * c, b);
      cuda::add_product<T>(a, b[0], b[1], sums[2 * c]);
      cuda::add_product<T>(a, b[2], b[3], sums[2 * c + 1]);
    });
  });
}

template <class T, int n>
__device__ void store(const WarpSums<n>& sums, const HeadRows<T>& to, std::int64_t row) {
  const SumsLane lane;
  unrolled<2>([&](int half) {
    const std::int64_t at = row + lane.row(2 * half);
    if (at >= to.rows) return;
    unrolled<n>([&](int j) {
      const std::int64_t column = lane.column(j, 0);
      if (column >= to.columns) return;
      *reinterpret_cast<std::uint32_t*>(to.data + at * to.step + column) =
          cuda::pack<T>(sums[j][2 * half], sums[j][2 * half + 1]);
    });
  });
}

// The fold of the values of the four threads that share rows; all of them get it.
template <class Fold>
__device__ float fold_columns(float value, const Fold& fold) {
  for (int lanes = 1; lanes < 4; lanes *= 2) {
    value = fold(value, __shfl_xor_sync(0xffffffffu, value, lanes));
  }
  return value;
}

// Calls compute(at, stage) for each tile from `begin` to `end`, while load(at, stage) fetches the
// next one into the other stage.
template <class Load, class Compute>
__device__ void for_each_tile(std::int64_t begin, std::int64_t end, int step, const Load& load,
                              const Compute& compute) {
  int stage = 0;
  if (begin < end) load(begin, stage);
  cuda::end_copies();
  for (std::int64_t at = begin; at < end; at += step, stage ^= 1) {
    if (at + step < end) load(at + step, stage ^ 1);
    cuda::end_copies();
    cuda::wait_for_copies<1>();
    __syncthreads();
    compute(at, stage);
    __syncthreads();
  }
  cuda::wait_for_copies<0>();  // what was copied before, if there is no tile
}

// Whether a dropout keeps the 64 keys of each query of a tile: a bit for each.
struct KeptKeys {
  std::uint64_t* data;

  static constexpr std::size_t bytes(int queries) { return sizeof(std::uint64_t) * queries; }
  // Those of tile `number` of so many queries.
  __device__ KeptKeys next(int number, int queries) const { return {data + number * queries}; }

  // Draws the numbers of `queries` queries and the 64 keys from `key` on: a half of a warp draws a
  // query's, each lane one number of each 16 keys.
  __device__ void draw(const Scores& scores, std::int64_t head, std::int64_t query, int queries,
                       std::int64_t key) const {
    const int lane = static_cast<int>(threadIdx.x) % 16, half = static_cast<int>(threadIdx.x) / 16;
    for (int row = half; row < queries; row += kBlockThreads / 16) {
      const PhiloxWords drawn = scores.words(head, query + row, key, lane);
      for (int j = 0; j < 4; ++j) {
        const unsigned kept = __ballot_sync(0xffffffffu, drawn.words[j] >= scores.threshold);
        if (lane != j) continue;
        reinterpret_cast<std::uint16_t*>(data + row)[j] =
            static_cast<std::uint16_t>(kept >> half % 2 * 16);
      }
    }
  }
  __device__ bool keeps(int query, int key) const { return (data[query] >> key & 1) != 0; }
};

}  // namespace renga::attention
