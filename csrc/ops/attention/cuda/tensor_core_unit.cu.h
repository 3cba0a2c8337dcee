// Products of tiles of 16-bit floats by tensor cores, which add them in float32.
#pragma once

#include "ops/attention/cuda/row_block.cu.h"

namespace renga::attention {

template <class Number>
struct TensorCoreUnit {
  using T = Number;
  // A thread has two rows of its warp's, and two adjoining columns of each eight.
  static constexpr int kThreadRows = 2, kRowLanes = 4;
  // Rows of the tiles that pass a block, for `columns` columns: as many as registers and 99 KB of
  // shared memory, which each device has for a block, allow.
  static constexpr int keys(int columns) { return columns <= 64 ? 64 : 32; }
  static constexpr int keys_of_gradients(int columns) { return keys(columns); }
  static constexpr int queries_of_gradients(int columns) { return columns <= 64 ? 32 : 16; }

  __device__ static int row(int r) { return row_of_warp() + lane_of_thread() / 4 + 8 * r; }
  __device__ static int column(int c) { return lane_of_thread() % 4 * 2 + c / 2 * 8 + c % 2; }

  // A thread's part of the sums of a block with n columns.
  template <int n>
  struct Sums {
    static constexpr int kColumns = n / 4;
    cuda::Sums parts[n / 8] = {};
    __device__ float& at(int r, int c) { return parts[c / 2][2 * r + c % 2]; }
    __device__ float at(int r, int c) const { return parts[c / 2][2 * r + c % 2]; }
  };

  // Rows of `columns` numbers in shared memory. Vectors of eight numbers change their order from
  // row to row, so that those of a column of eight rows are in different banks.
  template <int columns>
  class Tile {
   public:
    static constexpr int kRowBytes = columns * static_cast<int>(sizeof(T));

    __device__ Tile(Shared& shared, int rows)
        : begin_(cuda::shared_address(shared.take<T>(rows * columns))) {}
    // Tile `number` of those of so many rows that begin here.
    __device__ Tile next(int number, int rows) const {
      return Tile(begin_ + number * rows * kRowBytes);
    }

    // Copies `rows` rows from `begin` on, with zeros outside of x.
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
      const int row = row_of_warp() + lane_of_thread() % 16;
      cuda::load_matrices(at(row, lane_of_thread() / 16, column / kVector), a);
    }
    // Two right operands of eight rows each, whose transposes are multiplied.
    __device__ void right(int row, int column, cuda::Fragment& b) const {
      const int lane = lane_of_thread();
      cuda::load_matrices(at(row + lane / 16 * 8 + lane % 8, lane / 8 % 2, column / kVector), b);
    }
    // Two right operands of eight columns each.
    __device__ void right_columns(int row, int column, cuda::Fragment& b) const {
      const int lane = lane_of_thread();
      cuda::load_transposed(at(row + lane % 16, lane / 16, column / kVector), b);
    }

   private:
    static constexpr int kVector = 8, kVectors = columns / kVector, kVectorBytes = 16;

    __device__ explicit Tile(cuda::SharedAddress begin) : begin_(begin) {}

    // Vector `vector` + `first` of a row, where `first` has no bit of `vector`: what depends on the
    // thread is computed once for all constants `first`.
    __device__ cuda::SharedAddress at(int row, int vector, int first) const {
      const int turn = kVectors < 8 ? row / (8 / kVectors) % kVectors : row % 8;
      return begin_ + row * kRowBytes + (((vector ^ turn) * kVectorBytes) ^ (first * kVectorBytes));
    }

    cuda::SharedAddress begin_;
  };

  static constexpr std::size_t scratch_bytes(int /*passed_rows*/) { return 0; }
  __device__ TensorCoreUnit(Shared& /*shared*/, int /*passed_rows*/) {}

  // products = left right[rows from 0 on]^T.
  template <int n, int columns>
  __device__ void multiply_rows(const Tile<columns>& left, const Tile<columns>& right,
                                Sums<n>& products) const {
    products = {};
    unrolled<columns / 16>([&](int k) {
      cuda::Fragment a;
      left.left(16 * k, a);
      unrolled<n / 16>([&](int j) {
        cuda::Fragment b;
        right.right(16 * j, 16 * k, b);
        cuda::add_product<T>(a, b[0], b[1], products.parts[2 * j]);
        cuda::add_product<T>(a, b[2], b[3], products.parts[2 * j + 1]);
      });
    });
  }

  // sums += weights x, where weights are rounded to T: they are left operands as they are.
  template <int n, int columns>
  __device__ void accumulate(const Sums<n>& weights, const Tile<columns>& x,
                             Sums<columns>& sums) const {
    unrolled<n / 16>([&](int k) {
      cuda::Fragment a;
      unrolled<4>([&](int word) {
        const float* const pair = weights.parts[2 * k + word / 2] + word % 2 * 2;
        a[word] = cuda::pack<T>(pair[0], pair[1]);
      });
      unrolled<columns / 16>([&](int c) {
        cuda::Fragment b;
        x.right_columns(16 * k, 16 * c, b);
        cuda::add_product<T>(a, b[0], b[1], sums.parts[2 * c]);
        cuda::add_product<T>(a, b[2], b[3], sums.parts[2 * c + 1]);
      });
    });
  }

  template <int n>
  __device__ static void store(const Sums<n>& sums, const HeadRows<T>& to, std::int64_t begin) {
    unrolled<kThreadRows>([&](int r) {
      const std::int64_t at = begin + row(r);
      if (at >= to.rows) return;
      unrolled<n / 8>([&](int j) {
        const int first = column(2 * j);
        if (first >= to.columns) return;
        *reinterpret_cast<std::uint32_t*>(to.data + at * to.step + first) =
            cuda::pack<T>(sums.at(r, 2 * j), sums.at(r, 2 * j + 1));
      });
    });
  }
};

}  // namespace renga::attention
