// Direct convolution by oneDNN.
#pragma once

#include "ops/convolution/cpu/problem.h"
#include "ops/matmul/packed_weight_cache.h"
#include "ops/matmul/precision.h"

namespace renga {

// float32 on every machine, bfloat16 if the CPU has AVX-512.
bool onednn_supports(Dtype dtype);
// Samples, channels and up to three more.
inline constexpr int kMostOnednnAxes = 5;

// Arrays of supported dtypes, none of them empty; the result is dense. Fastest for channels-last
// images. Forward and input gradient:
void onednn_convolve(const Problem& problem, ComputeType compute_type, PackedWeightCache* cache);
// Weight gradient in one call, whose bits depend on the number of threads (see
// direct_weight_grad.h).
void onednn_weight_grad(const Problem& problem, ComputeType compute_type);

}  // namespace renga
