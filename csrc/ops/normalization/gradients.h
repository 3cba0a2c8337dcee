// The gradients of batch normalization: in two passes over x and gy, or written with operations.
#pragma once

#include <vector>

#include "ops/normalization/multi_node.h"
#include "ops/normalization/normalization.h"

namespace renga {

using Gradients = std::vector<Variable>;

// A batch that was normalized by its own statistics, or those of all ranks' batches.
struct NormalizedBatch {
  Variable x, gamma, beta;
  Axes reduced;
  double eps;
  double count;   // of elements per channel
  Array inv_std;  // a vector over channels
  Normalization of;
  std::optional<Ranks> ranks;
};

// Of x, gamma and beta, without a history.
Gradients fused_gradients(const NormalizedBatch& batch, const Variable& gy);
// The same for derivatives of higher order.
Gradients composed_gradients(const NormalizedBatch& batch, const Variable& gy);
// Of x, gamma, beta, mean and var, the inputs, where statistics were given.
Gradients fixed_gradients(std::span<const Variable> inputs, const Variable& gy, const Axes& reduced,
                          double eps);

}  // namespace renga
