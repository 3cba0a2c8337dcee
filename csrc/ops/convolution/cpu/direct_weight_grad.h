// Weight gradients by oneDNN, cut into blocks by their shapes alone: the same bits on any number of
// threads.
#pragma once

#include "ops/convolution/cpu/problem.h"
#include "ops/matmul/precision.h"

namespace renga {

// Requirements as of onednn_weight_grad.
void direct_weight_grad(const Problem& problem, ComputeType compute_type);

}  // namespace renga
