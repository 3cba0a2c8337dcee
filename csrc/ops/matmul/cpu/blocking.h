// How a matrix product is cut into pieces: by its sizes alone, so that its bits do not depend on
// how many threads compute them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace renga {

// `rows` x `columns` blocks of the result, each the sum of `depth` products.
struct MatmulBlocks {
  std::int64_t rows = 1, columns = 1, depth = 1;

  std::int64_t count() const { return rows * columns; }
};

// As many as pay: each reads factors again that the others read, too (measured: the halves of a
// product of 50 million take 1 % longer than the whole on one thread, 16 parts of it 4 %).
inline std::int64_t wanted_blocks(std::int64_t work) {
  if (work < std::int64_t{1} << 21) return 1;
  if (work < std::int64_t{1} << 27) return 2;
  if (work < std::int64_t{1} << 31) return 4;
  return work < std::int64_t{1} << 34 ? 8 : 16;
}

inline MatmulBlocks matmul_blocks(std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t kEdge = 128, kDepth = 2048;  // the least
  // Of vectors each number is read for one product: oneDNN's own kernels for them are best whole.
  const bool of_vectors = std::min({m, n, k}) == 1;
  const std::int64_t wanted = of_vectors ? 1 : wanted_blocks(m * n * k);
  MatmulBlocks blocks;
  // Where sums are long, parts of them read no factor twice.
  const std::int64_t longest = std::max(kDepth, 8 * std::max(m, n));
  while (blocks.depth < wanted && k / blocks.depth >= 2 * longest) blocks.depth *= 2;
  while (blocks.count() * blocks.depth < wanted) {
    const std::int64_t down = m / blocks.rows, across = n / blocks.columns;
    if (std::max(down, across) < 2 * kEdge) break;
    (down > across ? blocks.rows : blocks.columns) *= 2;
  }
  while (blocks.count() * blocks.depth < wanted && k / blocks.depth >= 2 * kDepth) {
    blocks.depth *= 2;
  }
  return blocks;
}

// Where piece `i` of `pieces` of an axis begins, at a multiple of 16.
inline std::int64_t block_begin(std::int64_t extent, std::int64_t pieces, std::int64_t i) {
  const std::int64_t each = (extent + pieces - 1) / pieces;
  return std::min(extent, i * ((each + 15) / 16 * 16));
}

}  // namespace renga
