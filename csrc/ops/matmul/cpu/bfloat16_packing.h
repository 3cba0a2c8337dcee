// Operands of products of bfloat16 numbers, in the layouts that kernels read.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/half.h"

namespace renga {

// A matrix of a product, which sums over the depth; the other axis is the width. Lines are rows or
// columns whose elements adjoin, `step` elements apart.
struct PackedSource {
  std::int64_t depth, width;
  bool lines_along_depth;
  std::int64_t step;
  // Packs what rounding loses of each float, rounded itself: the low part of bf16x3.
  bool residual = false;
};

// Either `width` rows of `depth` numbers, `step` elements apart, or panels of `panel` columns,
// `step` elements apart, in which pairs of numbers that follow each other in depth adjoin. Both
// extents may be larger than the matrix, which zeros then surround; those of panels are multiples
// of `panel` and of 32.
struct PackedLayout {
  std::int64_t depth, width;
  std::int64_t panel = 0;  // a multiple of 16; 0: rows
  std::int64_t step = 0;
  bool streams = false;  // past the caches: `to` starts a cache line and depth is a multiple of 32
};

// Rounds a matrix of float or bfloat16 numbers into a layout, on all threads.
template <class T>
void pack_bfloat16(const T* from, const PackedSource& x, bfloat16* to, const PackedLayout& y);

// Packs rows of `width` numbers along the depth of panels: those at even places and the ones after
// them are pairs, and in a second copy, `copy_step` numbers further unless that is 0, those at odd
// places. There is one row more than the layout is deep, for the last pair of the second copy.
template <class T>
void pack_pairs(std::span<const T* const> rows, std::int64_t width, bfloat16* to,
                const PackedLayout& layout, std::int64_t copy_step);

}  // namespace renga
