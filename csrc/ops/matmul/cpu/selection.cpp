// All numbers here were measured on cores of a Zen 4 and a Sapphire Rapids, those without AVX-512
// on a Zen 3.
//
// Loops compute products with at most 256 pairs of numbers, as looking at the layout takes as long.
//
// From 2^18 pairs on (a primitive's set-up costs more than fewer), and 2^16 of each of a stack's
// products (a primitive's call does), bfloat16 or float32 numbers are multiplied as follows where
// the machine is faster so: in bfloat16 for operands of bfloat16, without tiles from 8 rows and
// columns on (oneDNN's dot products of few rows are slow), and from 12 on for precision `medium`;
// from 32 on in bf16x3 for `high`; on tiles (tile_matmul.cpp) or by oneDNN (bfloat16_matmul.cpp).
//
// A product of one pair of float32 matrices a (m, k) and b (k, n), whose n k numbers are the
// weights, has the kernel of the first line that holds:
//
//   m       b           further                         kernel        reason
//   1       any         n < 256                         onednn        threads share out columns
//   2-48    by rows     n k >= 2^16, 2^19 for m < 8     panels        oneDNN reads memory slowly
//   129-    by rows     aᵀ whose rows share their       stacked_rows  oneDNN takes 1 to 15 % more,
//                       places in the first-level                     without AVX-512 20 to 50 %
//                       cache; n >= 64, k >= 512 (128
//                       without AVX-512)
//   129-    by rows     a by rows, without AVX-512;     blocks        oneDNN takes 1 to 20 % more
//                       n >= 64, k >= 48, m n >= 2^15
//   1-19    by columns  n k >= 2^14, 2^17 for m < 5     few_rows      packing would take longer
//   20-128  by columns  n k >= 2^14                     panels        they may be kept, too
//   129-    by columns  a by rows; n >= 64, k >= 48     blocks        oneDNN transposes b for each
//                                                                     of the blocks of threads
//   any     any         k = 1, also in a stack          outer         memory is all there is to it
//   any     any         m n k < 2^13, 2^15 in a stack,  registers     set-up of a call of oneDNN
//                       but aᵀ bᵀ
//   any     any                                         onednn        as fast or faster
//
// Weights that stay in the second-level cache are oneDNN's where few rows meet them: hence the
// bounds of n k. A column (n = 1) is the row of the transposed product: where that has few_rows, it
// is one_column. Stacks of pairs are multiplied by the last three lines; threads share them out.
//
// Of the other dtypes, float16 and the rest of bfloat16 are multiplied in float32: a vector and
// lines along the depth where they are (multiply_lines), depths of 1 element by element, others as
// converted arrays, of which parts stay in the second-level cache. The rest have loops.
#include "ops/matmul/cpu/selection.h"

#include <algorithm>
#include <atomic>

#include "ops/matmul/packed_weight_cache.h"
#include "simd/cpu_features.h"

namespace renga {
namespace {

enum class Setting { by_machine, on, off };
std::atomic<Setting> bf16x3{Setting::by_machine}, bfloat16_products{Setting::by_machine};

bool is_on(Setting setting, bool by_machine) {
  return setting == Setting::by_machine ? by_machine : setting == Setting::on;
}

Setting setting_of(std::optional<bool> on) {
  return !on ? Setting::by_machine : *on ? Setting::on : Setting::off;
}

bool are_few_rows(std::int64_t rows, std::int64_t weights) {
  return rows < 20 && weights >= (rows > 4 ? 1 << 14 : 1 << 17);
}

// Whether a result has rows and columns enough for blocks, and for groups of stacked rows.
bool fills_blocks(std::int64_t m, std::int64_t n) { return m > 128 && n >= 64; }

// Whether stacked rows are faster than oneDNN's kernels, which are slow where the rows of `a` share
// their places in the first-level cache: without AVX-512 from fewer rows on, and by shorter ones.
bool gain_by_stacked_rows(const Matrix& a, const Sizes& size) {
  const auto [m, n, k] = size;
  const bool is_wide = simd::has_avx512();
  return fills_blocks(m, n) && k >= (is_wide ? 512 : 128) &&
         a.leading % (is_wide ? 1024 : 256) == 0;
}

// Whether blocks of b, by rows, are faster than oneDNN's, which has its best kernels for AVX-512.
bool gain_by_blocks(const Sizes& size) {
  const auto [m, n, k] = size;
  return !simd::has_avx512() && fills_blocks(m, n) && k >= 48 && m * n >= 1 << 15;
}

// Returns the kernel of a single pair; this is onednn where none of renga's own is best.
FloatKernel own_kernel(const Matrix& a, const Matrix& b, const Sizes& size) {
  constexpr std::int64_t kLeastColumns = 256;
  const auto [m, n, k] = size;
  if (m == 1 && n < kLeastColumns) return FloatKernel::onednn;
  if (!b.transposed) {
    if (m > 1 && m <= 48 && n * k >= (m < 8 ? 1 << 19 : 1 << 16)) return FloatKernel::panels;
    if (!a.transposed) return gain_by_blocks(size) ? FloatKernel::blocks : FloatKernel::onednn;
    return gain_by_stacked_rows(a, size) ? FloatKernel::stacked_rows : FloatKernel::onednn;
  }
  if (are_few_rows(m, n * k)) return FloatKernel::few_rows;
  if (packs(m, n * k)) return FloatKernel::panels;
  return !a.transposed && fills_blocks(m, n) && k >= 48 ? FloatKernel::blocks : FloatKernel::onednn;
}

}  // namespace

bool bf16x3_is_faster() {
  const bool can = simd::has_tiles() || simd::has_avx512();
  return can && is_on(bf16x3, simd::has_tiles());
}

bool dot_products_are_faster() {
  return simd::has_bfloat16_dot_product() &&
         is_on(bfloat16_products, simd::has_fast_bfloat16_dot_product());
}

bool bfloat16_is_faster() {
  return simd::has_tiles() ? is_on(bfloat16_products, true) : dot_products_are_faster();
}

void override_bf16x3(std::optional<bool> faster) { bf16x3 = setting_of(faster); }

void override_bfloat16(std::optional<bool> faster) { bfloat16_products = setting_of(faster); }

Precision precision_of(const Sizes& size, std::int64_t count, bool all_float32) {
  constexpr std::int64_t kLeastProducts = 1 << 18, kLeastOfPair = 1 << 16;
  const std::int64_t of_pair = size.m * size.n * size.k;
  if (of_pair < kLeastOfPair || count * of_pair < kLeastProducts) return Precision::highest;
  // Rounding an operand takes longer than multiplying its numbers so few times as they are.
  constexpr std::int64_t kLeastUses = 12, kLeastUsesOfParts = 32, kLeastUsesWithoutTiles = 8;
  const std::int64_t uses = std::min(size.m, size.n);
  if (!all_float32) {
    const bool is_faster = simd::has_tiles() || uses >= kLeastUsesWithoutTiles;
    return is_faster && bfloat16_is_faster() ? Precision::medium : Precision::highest;
  }
  switch (compute_precision()) {
    case Precision::medium:
      return uses >= kLeastUses && bfloat16_is_faster() ? Precision::medium : Precision::highest;
    case Precision::high:
      return uses >= kLeastUsesOfParts && bf16x3_is_faster() ? Precision::high : Precision::highest;
    case Precision::highest:
      break;
  }
  return Precision::highest;
}

bool is_small(std::int64_t products) { return products <= 256; }

FloatKernel float_kernel(const Matrix& a, const Matrix& b, const Sizes& size, bool is_single) {
  constexpr std::int64_t kLeastRows = 256;
  const auto [m, n, k] = size;
  if (k == 1) return FloatKernel::outer;
  if (is_single) {
    if (n > 1 || m == 1) {
      const FloatKernel own = own_kernel(a, b, size);
      if (own != FloatKernel::onednn) return own;
    } else if (!a.transposed && m >= kLeastRows && are_few_rows(1, m * k)) {
      return FloatKernel::one_column;
    }
  }
  const bool is_few = !is_single || m <= 4;
  const bool is_small = m * n * k < (is_few ? 1 << 15 : 1 << 13);
  return is_small && (!a.transposed || !b.transposed) ? FloatKernel::registers
                                                      : FloatKernel::onednn;
}

bool may_keep_packed(std::int64_t rows, std::int64_t weights) {
  return packs(std::max<std::int64_t>(rows, simd::has_tiles() ? 20 : 0), weights);
}

bool packs(std::int64_t rows, std::int64_t weights) {
  return rows >= 20 && rows <= 128 && weights >= 1 << 14;
}

bool multiplies_parts(std::int64_t m, std::int64_t n, std::int64_t rows) {
  return fills_blocks(m, n) && rows >= 512;
}

std::int64_t uses_worth_packing(bool transposed) {
  // Columns that are multiplied where they are take but a tenth longer.
  return transposed ? PackedWeightCache::kManyUses : 16;
}

bool shares_out_pairs(std::int64_t count, std::int64_t products_each) {
  return count > 1 && products_each <= 1 << 24;
}

}  // namespace renga
