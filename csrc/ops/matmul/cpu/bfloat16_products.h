// Which products are computed in bfloat16, and bf16x3: float32 products computed as three bfloat16
// products each, for machines that multiply bfloat16 many times as fast. x = high + low but for
// about 2^-17 of x; low times low is left out.
#pragma once

#include <optional>

#include "simd/tile_unit.h"
#include "tensor/array.h"

namespace renga {

// Whether bf16x3 is faster than float32 products: on tiles.
bool bf16x3_is_faster();
// Whether one product of bfloat16 numbers is, on tiles or else by dot products.
bool bfloat16_is_faster();
// Whether one is by dot products, where a kernel does not use tiles.
bool dot_products_are_faster();
// For tests: what these return on machines that can compute so (with tiles; with AVX-512, or dot
// products of bfloat16 numbers); nullopt restores the default.
void override_bf16x3(std::optional<bool> faster);
void override_bfloat16(std::optional<bool> faster);

// A float32 array as the sum of two bfloat16 arrays.
struct Bfloat16Split {
  explicit Bfloat16Split(const Array& x);
  Array high, low;
};

}  // namespace renga
