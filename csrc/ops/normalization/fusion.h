// Batch normalization fused with the activation and the dropout after it, forward and backward, or
// with the addition of a residual and the activation after that, forward. A normalization is
// deferred (lazy/deferred.h); rewrites of add, relu, its relatives and dropout extend the deferred
// computation, which then makes one pass over memory. Without a graph, that of what is computed
// part after part (lazy/deferred_parts.h) goes over each part.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "lazy/deferred_parts.h"
#include "ops/normalization/normalization.h"

namespace renga {

// A deferred normalization with what follows it.
struct DeferredNormalization final : DeferredStep {
  DeferredNormalization(const Array& y, const Normalization& normalization)
      : DeferredStep(y, normalization.x.array, normalization.residual, unit_of(normalization)),
        normalization(normalization) {}
  // `source` computes x.
  DeferredNormalization(const Array& y, const Normalization& normalization,
                        const Ref<const DeferredParts>& source)
      : DeferredStep(y, source, normalization.residual), normalization(normalization) {}
  void transform(const Array& x, const Array& y, std::int64_t first, std::int64_t begin,
                 std::int64_t end) const override;
  const Normalization normalization;

 private:
  // The elements after which channels begin again; all of them if a dropout counts them.
  static std::int64_t unit_of(const Normalization& normalization) {
    const ChannelLayout& layout = normalization.x.layout;
    const std::int64_t elements = layout.channels * layout.inner;
    return std::max<std::int64_t>(normalization.dropout ? elements * layout.outer : elements, 1);
  }
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

// The pending computation of x if a normalization over these axes may go over its parts, whose
// elements are pixels.
Ref<const DeferredParts> parts_to_normalize(const Variable& x, const Axes& reduced);

// If gy is a deferred gradient of this normalization: moves its activation and dropout to
// `normalization`, whose kernel computes them, and returns the gradient before them.
std::optional<Array> fuse_gradient(const Variable& gy, Normalization& normalization);

}  // namespace renga
