// Products of tiles of float32, by the instructions of single numbers.
#pragma once

#include "ops/attention/cuda/row_block.cu.h"

namespace renga::attention {

struct FloatUnit {
  using T = float;
  // A thread has eight adjoining rows: it multiplies them by few columns, as loads of an operand
  // that threads share cost one instruction, and others as many as they have vectors.
  static constexpr int kThreadRows = 8, kRowLanes = 16;
  // Rows of the tiles that pass a block, as far as shared memory allows.
  static constexpr int keys(int /*columns*/) { return 32; }
  static constexpr int keys_of_gradients(int /*columns*/) { return 16; }
  static constexpr int queries_of_gradients(int /*columns*/) { return 16; }

  // Columns of scores: every 16th. Those of results adjoin each other.
  __device__ static int row(int r) {
    return row_of_warp() + lane_of_thread() / kRowLanes * kThreadRows + r;
  }
  __device__ static int column(int c) { return lane_of_thread() % kRowLanes + kRowLanes * c; }

  template <int n>
  struct Sums {
    static constexpr int kColumns = n / kRowLanes;
    float numbers[kThreadRows][kColumns] = {};
    __device__ float& at(int r, int c) { return numbers[r][c]; }
    __device__ float at(int r, int c) const { return numbers[r][c]; }
  };

  // Rows of numbers in shared memory. Vectors of four numbers of eight rows are in different banks.
  template <int columns>
  class Tile {
   public:
    static constexpr int kPitch = columns + 4;
    static constexpr int kRowBytes = kPitch * static_cast<int>(sizeof(float));

    __device__ Tile(Shared& shared, int rows) : data_(shared.take<float>(rows * kPitch)) {}
    __device__ Tile next(int number, int rows) const {
      return Tile(data_ + number * rows * kPitch);
    }
    __device__ void load(const HeadRows<const float>& x, std::int64_t begin, int rows) const {
      for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += kBlockThreads) {
        const int row = i / columns, column = i % columns;
        const bool exists = begin + row < x.rows && column < x.columns;
        const float* const from = exists ? x.data + (begin + row) * x.step + column : x.data;
        cuda::copy_word_later(cuda::shared_address(data_ + row * kPitch + column), from, exists);
      }
    }
    __device__ const float* row(int row) const { return data_ + row * kPitch; }

   private:
    __device__ explicit Tile(float* data) : data_(data) {}
    float* data_;
  };

  static constexpr int weight_pitch(int passed_rows) { return passed_rows + 4; }
  static constexpr std::size_t scratch_bytes(int passed_rows) {
    return sizeof(float) * kBlockRows * static_cast<std::size_t>(weight_pitch(passed_rows));
  }
  __device__ FloatUnit(Shared& shared, int passed_rows)
      : weights_(shared.take<float>(kBlockRows * weight_pitch(passed_rows))) {}

  template <int n, int columns>
  __device__ void multiply_rows(const Tile<columns>& left, const Tile<columns>& right,
                                Sums<n>& products) const {
    products = {};
    for (int k = 0; k < columns; k += kVector) {
      Vector<kVector> b[Sums<n>::kColumns];
      unrolled<Sums<n>::kColumns>(
          [&](int c) { b[c] = vector_at<kVector>(right.row(column(c)) + k); });
      unrolled<kThreadRows>([&](int r) {
        const auto a = vector_at<kVector>(left.row(row(r)) + k);
        unrolled<Sums<n>::kColumns>([&](int c) {
          unrolled<kVector>([&](int i) { products.at(r, c) += a.numbers[i] * b[c].numbers[i]; });
        });
      });
    }
  }

  // Weights pass through shared memory, where only this warp reads its rows.
  template <int n, int columns>
  __device__ void accumulate(const Sums<n>& weights, const Tile<columns>& x,
                             Sums<columns>& sums) const {
    constexpr int pitch = weight_pitch(n), each = Sums<columns>::kColumns;
    const int first = lane_of_thread() % kRowLanes * each;
    __syncwarp();
    unrolled<kThreadRows>([&](int r) {
      unrolled<Sums<n>::kColumns>(
          [&](int c) { weights_[row(r) * pitch + column(c)] = weights.at(r, c); });
    });
    __syncwarp();
    for (int k = 0; k < n; k += kVector) {
      Vector<each> b[kVector];
      unrolled<kVector>([&](int i) { b[i] = vector_at<each>(x.row(k + i) + first); });
      unrolled<kThreadRows>([&](int r) {
        const auto a = vector_at<kVector>(weights_ + row(r) * pitch + k);
        unrolled<each>([&](int c) {
          unrolled<kVector>([&](int i) { sums.at(r, c) += a.numbers[i] * b[i].numbers[c]; });
        });
      });
    }
  }

  template <int n>
  __device__ static void store(const Sums<n>& sums, const HeadRows<float>& to, std::int64_t begin) {
    constexpr int each = Sums<n>::kColumns;
    const int first = lane_of_thread() % kRowLanes * each;
    unrolled<kThreadRows>([&](int r) {
      unrolled<each>([&](int c) { to.store(begin + row(r), first + c, sums.at(r, c)); });
    });
  }

 private:
  static constexpr int kVector = 4;
  template <int n>
  struct alignas(n * sizeof(float)) Vector {
    float numbers[n];
  };
  template <int n>
  __device__ static Vector<n> vector_at(const float* from) {
    return *reinterpret_cast<const Vector<n>*>(from);
  }

  float* weights_;
};

}  // namespace renga::attention
