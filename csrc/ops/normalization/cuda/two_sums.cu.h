// Two sums for each channel or column, by the blocks of a grid: the threads of a block fold theirs,
// and where the elements of one are divided into parts, a second kernel adds those. The order of
// sums depends on shapes alone.
#pragma once

#include "ops/reduction/cuda/fold.cu.h"

namespace renga::cuda {

struct TwoSums {
  double first, second;
};
struct AddSums {
  __device__ TwoSums operator()(const TwoSums& a, const TwoSums& b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

// Parts that give every multiprocessor several blocks, `of_each` elements a thread at least.
inline unsigned parts_of_sums(std::int64_t blocks, std::int64_t n, std::int64_t of_each) {
  constexpr std::int64_t kEnough = 1056;
  return static_cast<unsigned>(
      std::clamp<std::int64_t>(std::min(kEnough / blocks, n / of_each), 1, kEnough));
}

// Ends a kernel with each thread's sums: those of result k go to terms.store(k, sums), or to
// `partial` where there are several parts. All threads of a block call this.
template <class Terms>
__device__ void finish_sums(const FoldThread& thread, const FoldGrid& grid, const Terms& terms,
                            TwoSums sums, std::int64_t results, TwoSums* partial) {
  sums = fold_threads(thread, sums, AddSums{});
  if (thread.result >= results || thread.row != 0) return;
  if (grid.parts == 1) return terms.store(thread.result, sums);
  partial[thread.part * results + thread.result] = sums;
}

template <class Terms>
__global__ void add_parts(Terms terms, const TwoSums* partial, std::int64_t results, unsigned parts,
                          FoldGrid grid) {
  const FoldThread thread(grid);
  TwoSums sums{0, 0};
  for (std::int64_t part = thread.row; thread.result < results && part < parts;
       part += thread.rows) {
    sums = AddSums{}(sums, partial[part * results + thread.result]);
  }
  finish_sums(thread, grid, terms, sums, results, nullptr);
}

// Calls start(partial), which launches a kernel that ends with finish_sums, and adds its parts.
template <class Terms, class Start>
void launch_sums(Device device, const FoldGrid& grid, const Terms& terms, std::int64_t results,
                 const Start& start) {
  if (grid.parts == 1) return start(nullptr);
  const std::int64_t bytes = results * grid.parts * static_cast<std::int64_t>(sizeof(TwoSums));
  const Array partial = empty({bytes}, Dtype::uint8, device);
  start(partial.as<TwoSums>());
  const FoldGrid of_parts = grid_of_parts(results);
  launch(device, of_parts.grid(sizeof(TwoSums)), add_parts<Terms>, terms,
         partial.as<const TwoSums>(), results, grid.parts, of_parts);
}

}  // namespace renga::cuda
