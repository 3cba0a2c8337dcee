// Blocks of eight warps, each of which has 16 rows of the results and of the left operand of
// products, while tiles of rows pass through shared memory.
#pragma once

#include "ops/attention/cuda/scores.cu.h"
#include "tensor/tensor_cores.cu.h"

namespace renga::attention {

inline constexpr int kWarps = 8, kWarpRows = 16;
inline constexpr int kBlockThreads = kWarps * cuda::kWarp, kBlockRows = kWarps * kWarpRows;

// The thread's number in its warp, and the first of the warp's rows.
__device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x) % cuda::kWarp; }
__device__ inline int row_of_warp() {
  return static_cast<int>(threadIdx.x) / cuda::kWarp * kWarpRows;
}

// Divides the block's shared memory.
class Shared {
 public:
  __device__ Shared() : next_(cuda::shared_memory<std::byte>()) {}
  template <class T>
  __device__ T* take(int count) {
    auto* const taken = reinterpret_cast<T*>(next_);
    next_ += sizeof(T) * static_cast<std::size_t>(count);
    return taken;
  }

 private:
  std::byte* next_;
};

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

  // Those of tile `number` of so many queries.
  __device__ KeptKeys next(int number, int queries) const { return {data + number * queries}; }

  // Draws the numbers of `queries` queries and the 64 keys of which `key` is one: a half of a warp
  // draws a query's, each lane one number of each 16 keys.
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
