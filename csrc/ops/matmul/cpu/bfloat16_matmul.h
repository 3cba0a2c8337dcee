// Matrix products of bfloat16 numbers, on tiles or by oneDNN. Shapes are those of MatmulKernels; no
// matrix is empty. The bits do not depend on the number of threads.
#pragma once

#include "ops/matmul/epilogue.h"
#include "ops/matmul/packed_weight_cache.h"

namespace renga {

// c = a b + epilogue, whose operands are rounded to bfloat16 and summed in float32; each of them,
// the bias and c is bfloat16 or float32. With a `cache`, the packed b of a single product may be
// kept there.
void multiply_bfloat16(const Array& a, const Array& b, const Array& c, const Epilogue& epilogue,
                       PackedWeightCache* cache = nullptr);

// A float32 array as the sum of two bfloat16 arrays, but for about 2^-17 of it.
struct Bfloat16Split {
  explicit Bfloat16Split(const Array& x);
  Array high, low;
};

// c (+)= a b in float32 by bf16x3: as three bfloat16 products, for machines that multiply bfloat16
// many times as fast. Low times low is left out.
void multiply_bf16x3(const Array& a, const Array& b, const Array& c, bool accumulate);

// These compute the two products above where there are tiles (simd::has_tiles()).
void multiply_on_tiles(const Array& a, const Array& b, const Array& c, const Epilogue& epilogue,
                       PackedWeightCache* cache = nullptr);
void multiply_bf16x3_on_tiles(const Array& a, const Array& b, const Array& c, bool accumulate);

}  // namespace renga
