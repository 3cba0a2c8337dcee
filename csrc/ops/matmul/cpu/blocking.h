// A matrix product is cut into blocks by its sizes alone, so that its bits do not depend on the
// number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "devices/rounding.h"

namespace renga {

// `rows` x `columns` blocks of the result, each the sum of `depth` products.
struct MatmulBlocks {
  std::int64_t rows = 1, columns = 1, depth = 1;

  std::int64_t count() const { return rows * columns; }
};

// Returns how many blocks are worth it. Each block reads operands that others read, too (measured
// on one thread: in 2 blocks a product of 50 million takes 1 % longer, in 16 blocks 4 %).
inline std::int64_t wanted_blocks(std::int64_t work) {
  if (work < std::int64_t{1} << 21) return 1;
  if (work < std::int64_t{1} << 27) return 2;
  if (work < std::int64_t{1} << 31) return 4;
  return work < std::int64_t{1} << 34 ? 8 : 16;
}

// Returns the blocks of a product of a matrix and a vector, or of two vectors. Nothing is read
// twice, and reading the matrix is all there is to do. Blocks are of about a megabyte and of whole
// lines of the matrix: where these run along the depth, each gives a number of the result,
// otherwise a term of all its numbers.
inline MatmulBlocks vector_blocks(std::int64_t m, std::int64_t n, std::int64_t k,
                                  bool lines_along_depth) {
  constexpr std::int64_t kWork = 1 << 18, kMost = 16;
  // With 16 numbers for each of the most blocks, none along the depth is empty (see block_begin).
  const std::int64_t edge = lines_along_depth ? 32 : 16 * kMost;
  MatmulBlocks blocks;
  if (k == 1) return blocks;  // writes the result
  std::int64_t& count = !lines_along_depth ? blocks.depth : m >= n ? blocks.rows : blocks.columns;
  const std::int64_t extent = lines_along_depth ? std::max(m, n) : k;
  while (count < kMost && m * n * k / count >= 2 * kWork && extent / count >= 2 * edge) count *= 2;
  return blocks;
}

inline MatmulBlocks matmul_blocks(std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t kEdge = 128, kDepth = 2048;  // the least
  const std::int64_t wanted = wanted_blocks(m * n * k);
  MatmulBlocks blocks;
  // Blocks along the depth of long sums read no operand twice.
  const std::int64_t longest = std::max(kDepth, 8 * std::max(m, n));
  while (blocks.depth < wanted && k / blocks.depth >= 2 * longest) blocks.depth *= 2;
  while (blocks.count() * blocks.depth < wanted) {
    const std::int64_t down = m / blocks.rows, across = n / blocks.columns;
    if (std::max(down, across) < 2 * kEdge) break;
    (down >= across ? blocks.rows : blocks.columns) *= 2;
  }
  while (blocks.count() * blocks.depth < wanted && k / blocks.depth >= 2 * kDepth) {
    blocks.depth *= 2;
  }
  return blocks;
}

// Returns where block `i` of `count` along an axis begins, at a multiple of 16.
inline std::int64_t block_begin(std::int64_t extent, std::int64_t count, std::int64_t i) {
  return std::min(extent, i * round_up(divide_up(extent, count), 16));
}

}  // namespace renga
