// Batch normalization fused with the activation and the dropout after it, forward and backward, or
// with the addition of a residual and the activation after that, forward. A normalization is
// deferred (lazy/deferred.h); rewrites of add, relu, leaky_relu and dropout extend the deferred
// computation, which then makes one pass over memory.
#pragma once

#include <optional>
#include <utility>

#include "ops/normalization/normalization.h"

namespace renga {

// A deferred normalization with what follows it.
struct DeferredNormalization final : Deferred {
  DeferredNormalization(Array y, Normalization normalization)
      : Deferred(std::move(y), {normalization.x.array, normalization.residual}),
        normalization(std::move(normalization)) {}
  void compute(const Array& y) const override;
  const Normalization normalization;
};

// A deferred gradient: gy through the dropout and the activation of `normalization`, if it has
// them.
struct DeferredGradient final : Deferred {
  DeferredGradient(Array gx, Normalization normalization, Array gy)
      : Deferred(std::move(gx), {normalization.x.array, gy}),
        normalization(std::move(normalization)),
        gy(std::move(gy)) {}
  void compute(const Array& gx) const override;
  const Normalization normalization;
  const Array gy;
};

// Computes y, or defers that if y is large and the memory of x is not shared.
void normalize_into(const Variable& y, const Normalization& normalization, const UnsharedMemory& x);

// If gy is a deferred gradient of this normalization: moves its activation and dropout to
// `normalization`, whose kernel computes them, and returns the gradient before them.
std::optional<Array> fuse_gradient(const Variable& gy, Normalization& normalization);

}  // namespace renga
