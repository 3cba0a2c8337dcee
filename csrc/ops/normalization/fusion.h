// A normalization, the activation and the dropout after it in one pass over memory, forward and
// back: a normalization is deferred (lazy/deferred.h), and what meets it takes it up.
#pragma once

#include <optional>
#include <utility>

#include "ops/normalization/normalization.h"

namespace renga {

// A Variable's array yet to be computed.
struct DeferredNormalization final : Deferred {
  DeferredNormalization(Array y, Normalization of)
      : Deferred(std::move(y), {of.x.array}), of(std::move(of)) {}
  void compute(const Array& y) const override;
  const Normalization of;
};

// What `of`'s activation and dropout, those that it has, make of gy in the backward pass.
struct DeferredGradient final : Deferred {
  DeferredGradient(Array gx, Normalization of, Array gy)
      : Deferred(std::move(gx), {of.x.array, gy}), of(std::move(of)), gy(std::move(gy)) {}
  void compute(const Array& gx) const override;
  const Normalization of;
  const Array gy;
};

// Fills the Variable's array with the normalization: later, if it is large and nobody else has the
// memory of what is normalized.
void normalize_into(const Variable& y, const Normalization& of, const UnsharedMemory& x);

// gy for a kernel that does itself what activation and dropout do in the backward pass, which `of`
// is then told; nothing where gy is not the deferred gradient of this normalization.
std::optional<Array> take_gradient(const Variable& gy, Normalization& of);

}  // namespace renga
