// Reductions: the threads of a block divide the elements that become one result, fold theirs in
// order, and then each other's by halves. The order depends on shapes alone.
#pragma once

#include <bit>
#include <cstdlib>
#include <utility>

#include "tensor/elements.cu.h"

namespace renga::cuda {

// A block makes `columns` results; `rows` threads share the elements of each. Thread t works for
// result t % columns. Where results are few, their elements are divided among `parts` of the grid.
struct FoldGrid {
  unsigned columns, rows, blocks, parts;
  Grid grid(std::size_t value_bytes) const {
    return {blocks * parts, columns * rows, columns * rows * value_bytes};
  }
};

// The least power of two from n on, up to `most`, which is one.
inline unsigned power_for(std::int64_t n, std::int64_t most) {
  return std::bit_ceil(static_cast<unsigned>(std::clamp<std::int64_t>(n, 1, most)));
}

// Returns the grid for `results` of n elements each. Adjoining threads read adjoining elements,
// which are those of neighbouring results if `across`.
inline FoldGrid fold_grid(std::int64_t results, std::int64_t n, bool across) {
  const unsigned rows = power_for(n, across && results > 1 ? 8 : kThreads);
  const unsigned columns = power_for(results, kThreads / rows);
  constexpr std::int64_t kMostBlocks = 1 << 20, kEnough = 512, kLeastOfThread = 32;
  const std::int64_t blocks = std::min(kMostBlocks, (results + columns - 1) / columns);
  const std::int64_t parts = std::min(kEnough / blocks, n / (rows * kLeastOfThread));
  return {columns, rows, static_cast<unsigned>(blocks), power_for(parts, kThreads)};
}

// The position of the thread in the grid.
struct FoldThread {
  unsigned column, row, columns, rows, part;
  std::int64_t result;  // its first one; the next is `step` later
  std::int64_t step;
  __device__ explicit FoldThread(const FoldGrid& grid)
      : column(threadIdx.x % grid.columns),
        row(threadIdx.x / grid.columns),
        columns(grid.columns),
        rows(grid.rows),
        part(blockIdx.x / grid.blocks),
        result(std::int64_t{blockIdx.x % grid.blocks} * columns + column),
        step(std::int64_t{grid.blocks} * columns) {}
  // Whether a thread of the block has a result left: all threads of a block loop as often.
  __device__ bool any_left(std::int64_t results) const { return result - column < results; }
};

// The values of a column's threads folded; all of them get it. All threads of the block call this.
template <class Value, class Fold>
__device__ Value fold_threads(const FoldThread& thread, const Value& value, const Fold& fold) {
  auto* const values = shared_memory<Value>();
  Value& mine = values[threadIdx.x];
  mine = value;
  for (unsigned half = thread.rows / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread.row < half) mine = fold(mine, values[threadIdx.x + half * thread.columns]);
  }
  __syncthreads();
  const Value folded = values[thread.column];
  __syncthreads();  // before the memory is used again
  return folded;
}

// F has a Value, start(), element(p, i) of the i-th element at p, fold(a, b) and store(p, value).
// `kept` points at a result and its first element; `reduced` leads to the others. The values of
// several parts go to `partial`.
template <class F>
__global__ void fold_elements(F f, ElementLoop<2> kept, ElementLoop<1> reduced, FoldGrid grid,
                              typename F::Value* partial) {
  FoldThread thread(grid);
  const std::int64_t span = (reduced.size + grid.parts - 1) / grid.parts;
  const std::int64_t begin = thread.part * span, whole = begin + span;
  const std::int64_t end = whole < reduced.size ? whole : reduced.size;
  for (; thread.any_left(kept.size); thread.result += thread.step) {
    const bool is_used = thread.result < kept.size;
    std::byte* p[2] = {};
    if (is_used) kept.locate(thread.result, p);
    auto total = f.start();
    for (std::int64_t i = begin + thread.row; is_used && i < end; i += thread.rows) {
      std::byte* at;
      reduced.locate(i, &at);
      total = f.fold(total, f.element(p[1] + (at - reduced.data[0]), i));
    }
    total =
        fold_threads(thread, total, [&f](const auto& a, const auto& b) { return f.fold(a, b); });
    if (!is_used || thread.row != 0) continue;
    if (grid.parts > 1) {
      partial[thread.part * kept.size + thread.result] = total;
    } else {
      f.store(p[0], total);
    }
  }
}

// The grid for the parts of results: threads share those of each.
inline FoldGrid grid_of_parts(std::int64_t results) {
  constexpr unsigned kColumns = 8;
  const auto blocks = static_cast<unsigned>((results + kColumns - 1) / kColumns);
  return {kColumns, kThreads / kColumns, blocks, 1};
}

template <class F>
__global__ void fold_parts(F f, ElementLoop<2> kept, const typename F::Value* partial,
                           unsigned parts, FoldGrid grid) {
  const FoldThread thread(grid);
  const bool is_used = thread.result < kept.size;
  auto total = f.start();
  for (unsigned part = thread.row; is_used && part < parts; part += thread.rows) {
    total = f.fold(total, partial[part * kept.size + thread.result]);
  }
  total = fold_threads(thread, total, [&f](const auto& a, const auto& b) { return f.fold(a, b); });
  if (!is_used || thread.row != 0) return;
  std::byte* p[2];
  kept.locate(thread.result, p);
  f.store(p[0], total);
}

// `first` has the results' shape and each one's first element; `others` has the elements of one.
template <class F>
void fold(const F& f, const Array& y, const Array& first, const Array& others) {
  using Value = typename F::Value;
  if (y.size() == 0) return;
  // The loop is in the memory order of x; then results take the first place.
  ElementLoop<2> kept = make_element_loop<2>({&first, &y});
  std::swap(kept.strides[0], kept.strides[1]);
  std::swap(kept.data[0], kept.data[1]);
  const ElementLoop<1> reduced = make_element_loop<1>({&others});
  const bool across =
      std::abs(kept.strides[1][kept.ndim - 1]) < std::abs(reduced.strides[0][reduced.ndim - 1]);
  const FoldGrid grid = fold_grid(kept.size, reduced.size, across);
  if (grid.parts == 1) {
    return launch(y.device(), grid.grid(sizeof(Value)), fold_elements<F>, f, kept, reduced, grid,
                  nullptr);
  }
  const std::int64_t bytes = kept.size * grid.parts * static_cast<std::int64_t>(sizeof(Value));
  const Array partial = empty({bytes}, Dtype::uint8, y.device());
  launch(y.device(), grid.grid(sizeof(Value)), fold_elements<F>, f, kept, reduced, grid,
         partial.as<Value>());
  const FoldGrid of_parts = grid_of_parts(kept.size);
  launch(y.device(), of_parts.grid(sizeof(Value)), fold_parts<F>, f, kept,
         partial.as<const Value>(), grid.parts, of_parts);
}

// The grid for rows of n elements, `step` bytes apart, which are handled whole by a block.
template <int N>
FoldGrid row_grid(const ElementLoop<N>& rows, int operand, std::int64_t n, std::int64_t step) {
  FoldGrid grid = fold_grid(rows.size, n, rows.strides[operand][rows.ndim - 1] < step);
  grid.parts = 1;
  return grid;
}

}  // namespace renga::cuda
