// Which kernel computes a product on the CPU: selection.cpp has the map.
#pragma once

#include <cstdint>
#include <optional>

#include "ops/matmul/cpu/operands.h"
#include "settings/settings.h"
#include "simd/tile_unit.h"

namespace renga {

// Whether products of floats as three of bfloat16 numbers each (bf16x3) are faster: on tiles.
bool bf16x3_is_faster();
// Whether one product of bfloat16 numbers is, on tiles or else by dot products.
bool bfloat16_is_faster();
// Whether one is by dot products, where a kernel does not use tiles.
bool dot_products_are_faster();
// Tests set what these return on machines that can compute so (with tiles; with AVX-512, or dot
// products of bfloat16 numbers); nullopt restores the default.
void override_bf16x3(std::optional<bool> faster);
void override_bfloat16(std::optional<bool> faster);

// Returns how products of numbers of bfloat16 or float32 are computed: `medium` as one of bfloat16,
// `high` as three of them each (bf16x3), `highest` in float32. Products are less precise only where
// that is faster: not in a stack of `count` small pairs, of which `size` is one.
Precision precision_of(const Sizes& size, std::int64_t count, bool all_float32);

// Whether loops over any strides multiply so few pairs of numbers.
bool is_small(std::int64_t products);

enum class FloatKernel : std::uint8_t {
  outer,       // one product for each number
  registers,   // multiply_small_product
  one_column,  // few_rows, for the transposed product
  few_rows,    // these as in float_kernels.h
  panels,
  blocks,
  stacked_rows,
  onednn,
};

// Returns the kernel for products of float32 matrices that are not small: of one pair, or of a
// stack of them.
FloatKernel float_kernel(const Matrix& a, const Matrix& b, const Sizes& size, bool is_single);

// MatmulKernels::packs.
bool may_keep_packed(std::int64_t rows, std::int64_t weights);
// Whether so many rows are multiplied by panels of float32 weights.
bool packs(std::int64_t rows, std::int64_t weights);
// MatmulKernels::multiplies_parts.
bool multiplies_parts(std::int64_t m, std::int64_t n, std::int64_t rows);

// Uses of a right operand that make up for packing it into panels.
std::int64_t uses_worth_packing(bool transposed);

// Whether threads share out the pairs of a stack of bfloat16 products, instead of the parts of one
// pair after another.
bool shares_out_pairs(std::int64_t count, std::int64_t products_each);

}  // namespace renga
