// Copies where the elements of the result adjoin along its last axis and those of the source along
// another one: a run along either jumps through the other's memory. They go tile by tile, whose
// lines of the cache stay in the nearest one.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "tensor/streaming.cpu.h"
#include "tensor/strided_loop.h"

namespace renga {
namespace crossing {

constexpr std::int64_t kTileRows = 256, kLeastColumns = 16, kLine = 64;
// What is written line by line here and there is worth streaming as soon as it leaves a core's
// own caches.
constexpr std::int64_t kStreamed = 1 << 22;

// The axes that are in no tile.
inline StridedLoop<2> around_tiles(const StridedLoop<2>& loop, int axis) {
  StridedLoop<2> outer{{1}, {Strides{0}, Strides{0}}, loop.data};
  for (int other = 0; other + 1 < loop.extents.size(); ++other) {
    if (other == axis) continue;
    outer.extents.push_back(loop.extents[other]);
    for (int k : {0, 1}) outer.strides[k].push_back(loop.strides[k][other]);
  }
  return outer;
}

// Two squares of numbers, each a half of every vector, to be transposed in registers.
template <class Bits>
struct Squares {
  static constexpr int size = 16 / sizeof(Bits);
  using Vector [[gnu::vector_size(32)]] = Bits;

  void load(int row, const Bits* first, const Bits* second) {
    using Half [[gnu::vector_size(16)]] = Bits;
    Half a, b;
    std::memcpy(&a, first, sizeof a);
    std::memcpy(&b, second, sizeof b);
    [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
      rows[row] = __builtin_shufflevector(a, b, i...);
    }
    (std::make_integer_sequence<int, 2 * size>());
  }

  // Every second number of the result is one of b; they are those of the halves from `first` on.
  template <int first, int... i>
  static Vector shuffled(const Vector& a, const Vector& b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b,
                                   (i / size * size + first + i % size / 2 + i % 2 * 2 * size)...);
  }

  // Row i of both becomes column i, by perfect shuffles of all numbers.
  void transpose() {
    constexpr auto all = std::make_integer_sequence<int, 2 * size>();
#pragma GCC unroll 4
    for (int stage = 1; stage < size; stage *= 2) {
      Vector next[size];
#pragma GCC unroll 8
      for (int k = 0; k < size / 2; ++k) {
        next[2 * k] = shuffled<0>(rows[k], rows[k + size / 2], all);
        next[2 * k + 1] = shuffled<size / 2>(rows[k], rows[k + size / 2], all);
      }
      std::copy_n(next, size, rows);
    }
  }

  Vector rows[size];
};

// In a Tile, `from` adjoins down the columns, which lie `from_column` apart, and `to` along the
// rows. Columns are copied first, as strides of a power of two map to the same cache sets.
template <class Bits>
struct Tile {
  static constexpr std::int64_t itemsize = sizeof(Bits);
  static constexpr std::int64_t columns = std::max(kLeastColumns, kLine / itemsize);

  void load(const std::byte* from, std::int64_t from_column, std::int64_t rows, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j, from += from_column) {
      std::copy_n(reinterpret_cast<const Bits*>(from), rows, numbers[j]);
      // The hardware prefetcher does not detect that the rows below are next.
      for (std::int64_t k = 0; k < rows * itemsize; k += kLine) {
        __builtin_prefetch(from + rows * itemsize + k);
      }
    }
  }

  void store(std::byte* to, std::int64_t to_row, std::int64_t rows, std::int64_t n,
             bool streams) const {
    constexpr int height = Squares<Bits>::size;
    alignas(kLine) Bits lines[height][columns];
    for (std::int64_t i = 0; i < rows; i += height) {
      for (std::int64_t j = 0; j < n; j += 2 * height) transpose(i, j, lines);
      const std::int64_t last = std::min<std::int64_t>(height, rows - i);
      for (std::int64_t k = 0; k < last; ++k, to += to_row) {
        if (n != columns) {
          std::memcpy(to, lines[k], static_cast<std::size_t>(n * itemsize));
        } else if (streams) {
          stream(lines[k], reinterpret_cast<Bits*>(to), columns);
        } else {
          std::memcpy(to, lines[k], sizeof lines[k]);
        }
      }
    }
  }

  // Rows from i on of the columns from j on.
  void transpose(std::int64_t i, std::int64_t j,
                 Bits (&lines)[Squares<Bits>::size][columns]) const {
    constexpr int size = Squares<Bits>::size;
    Squares<Bits> squares;
    for (int k = 0; k < size; ++k) {
      squares.load(k, &numbers[j + k][i], &numbers[j + size + k][i]);
    }
    squares.transpose();
    for (int k = 0; k < size; ++k) std::memcpy(&lines[k][j], &squares.rows[k], 32);
  }

  Bits numbers[columns][kTileRows + kLine / itemsize];
};

}  // namespace crossing

// The axis along which `from` adjoins, the tiles' rows; -1 where tiles would gain nothing, as where
// a row of `to` is one number.
inline int crossing_axis(const StridedLoop<2>& loop, std::int64_t itemsize) {
  const int last = loop.extents.size() - 1;
  const auto is_long = [&](int axis) { return loop.extents[axis] >= crossing::kLeastColumns; };
  if (loop.strides[0][last] != itemsize || loop.strides[1][last] == 0 || !is_long(last)) return -1;
  for (int axis = 0; axis < last; ++axis) {
    if (loop.strides[1][axis] == itemsize && is_long(axis)) return axis;
  }
  return -1;
}

template <class Bits>
void copy_crossing(const StridedLoop<2>& loop, int axis) {
  using namespace crossing;
  using T = Tile<Bits>;
  const StridedLoop<2> outer = around_tiles(loop, axis);
  const std::int64_t rows = loop.extents[axis], columns = loop.extents.back();
  const std::int64_t to_row = loop.strides[0][axis], from_column = loop.strides[1].back();
  const std::int64_t strips = divide_up(rows, kTileRows);
  const bool streams = loop.size() * T::itemsize >= kStreamed;
  const auto copy_strip = [&](T& tile, std::int64_t row, std::byte* to, const std::byte* from) {
    const std::int64_t down = std::min(kTileRows, rows - row);
    for (std::int64_t column = 0; column < columns; column += T::columns) {
      const std::int64_t across = std::min(T::columns, columns - column);
      tile.load(from + row * T::itemsize + column * from_column, from_column, down, across);
      tile.store(to + row * to_row + column * T::itemsize, to_row, down, across, streams);
    }
  };
  const std::int64_t cost = 2 * kTileRows * columns;
  parallel_for(outer.size() * strips, cost, [&](std::int64_t begin, std::int64_t end) {
    T tile{};
    for (std::int64_t k = begin; k < end; ++k) {
      for_each_run(outer, k / strips, k / strips + 1,
                   [&](std::int64_t, const auto& p, const auto&) {
                     copy_strip(tile, k % strips * kTileRows, p[0], p[1]);
                   });
    }
    if (streams) finish_streaming();
  });
}

}  // namespace renga
