// Winograd convolution: 3x3 kernels at stride 1 with a quarter of the multiplications, 4x4 and 3x3
// kernels at stride 2 with four and six tenths, and little more rounding error than a direct sum.
#pragma once

#include "ops/convolution/cpu/problem.h"
#include "ops/matmul/packed_weight_cache.h"
#include "ops/matmul/precision.h"

namespace renga {

// Whether winograd_convolve knows a convolution: kernels of 3x3 at stride 1, or of 4x4 or
// 3x3 at stride 2, no dilation, no groups, padding of at most 2, and channels in multiples of
// kPanel.
bool winograd_supports(const Shape& W, const Window& window);

// Outputs are computed in tiles of `rows` by `columns`. Each tile takes `points` multiplications
// per pair of an input and an output channel.
struct WinogradScheme {
  std::int64_t rows, columns, points;
};
WinogradScheme winograd_scheme(const Problem& problem, ComputeType compute_type);

// The forward pass and the input gradient. Images of float32 or bfloat16, weights of float32, none
// of them empty. The bias may be of any float dtype, or undefined; the cache may be nullptr.
// Computing in bfloat16 needs simd::has_bfloat16_dot_product. Fastest for channels-last images.
// Results do not depend on the number of threads.
void winograd_convolve(const Problem& problem, ComputeType compute_type, const Array& bias,
                       PackedWeightCache* cache);

// The weight gradient, of the same dtypes; gW is row-major. Adds to gW, or overwrites it.
void winograd_weight_grad(const Problem& problem, ComputeType compute_type, bool add);

}  // namespace renga
