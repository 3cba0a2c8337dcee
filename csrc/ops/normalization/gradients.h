// Gradients of batch normalization: fused, in two passes over x and gy, or written with operations.
#pragma once

#include <vector>

#include "ops/normalization/multi_node.h"
#include "ops/normalization/normalization.h"

namespace renga {

using Gradients = std::vector<Variable>;

// A NormalizedBatch is what a backward pass needs of a batch that was normalized with its own
// statistics, or with those of all ranks' batches.
struct NormalizedBatch {
  Variable x, gamma, beta;
  Axes reduced;
  double eps;
  double count;   // elements per channel
  Array inv_std;  // a vector over channels
  Normalization normalization;
  std::optional<StatisticsGroup> ranks;
};

// Returns the gradients of x, gamma and beta, without graph.
Gradients fused_gradients(const NormalizedBatch& batch, const Variable& gy);
// Returns the gradients of x, gamma and beta, recorded for higher derivatives.
Gradients composed_gradients(const NormalizedBatch& batch, const Variable& gy);
// These return the gradients of the inputs x, gamma, beta, mean and var of
// fixed_batch_normalization.
Gradients fused_fixed_gradients(std::span<const Variable> inputs,
                                const Normalization& normalization, const Array& inv_std,
                                const Variable& gy);
Gradients composed_fixed_gradients(std::span<const Variable> inputs, const Variable& gy,
                                   const Axes& reduced, double eps);

}  // namespace renga
