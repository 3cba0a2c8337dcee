// The tiles of a convolution are cut into blocks here.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "devices/rounding.h"
#include "ops/matmul/cpu/packed_gemm.h"

namespace renga::convolution::winograd {

// Tiles are convolved in blocks, whose transformed inputs should stay in the cache of a core.
// Blocks are of nearly equally many groups of kPanelRows tiles.
class Blocks {
 public:
  // There are as few blocks as fit the cache, or as many more as give all threads equally many.
  Blocks(std::int64_t tiles, std::int64_t channels, bool for_threads)
      : groups_(divide_up(tiles, kPanelRows)),
        count_(divide_up(groups_, std::clamp<std::int64_t>(2048 / channels, 32, 64) / kPanelRows)) {
    if (!for_threads) return;
    const std::int64_t threads = omp_get_max_threads();
    count_ = std::min(groups_, round_up(count_, threads));
  }

  std::int64_t count() const { return count_; }
  std::int64_t first(std::int64_t block) const { return block * groups_ / count_ * kPanelRows; }
  std::int64_t rows(std::int64_t block) const { return first(block + 1) - first(block); }
  std::int64_t most_rows() const {
    return divide_up(groups_, std::max<std::int64_t>(count_, 1)) * kPanelRows;
  }

 private:
  std::int64_t groups_, count_;
};

}  // namespace renga::convolution::winograd
