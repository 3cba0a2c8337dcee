// Softmax along an axis by the threads of a block.
#pragma once

#include <cmath>

#include "ops/reduction/cuda/fold.cu.h"
#include "ops/reduction/reducers.h"

namespace renga::cuda {

// n elements of dtype T, `step` bytes apart.
template <class T>
struct Row {
  std::byte* data;
  std::int64_t n, step;
  __device__ Compute<T> at(std::int64_t i) const { return load<T>(data + i * step); }
};

// Softmax of a row is computed with these: exp(x - top) / total.
template <class T>
struct SoftmaxTotals {
  Compute<T> top;
  double total;
};

// All threads of the block call this; those without a row give an empty one.
template <class T>
__device__ SoftmaxTotals<T> softmax_totals(const FoldThread& thread, const Row<T>& x) {
  using C = Compute<T>;
  using Largest = reducers::Max<T>;
  C top = Largest::start;
  for (std::int64_t i = thread.row; i < x.n; i += thread.rows) top = Largest::fold(top, x.at(i));
  top = fold_threads(thread, top, Largest::fold);
  double total = 0;
  for (std::int64_t i = thread.row; i < x.n; i += thread.rows) {
    total += static_cast<double>(std::exp(x.at(i) - top));
  }
  return {top, fold_threads(thread, total, [](double a, double b) { return a + b; })};
}

}  // namespace renga::cuda
