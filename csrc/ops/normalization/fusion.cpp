#include "ops/normalization/fusion.h"

#include "autograd/node.h"
#include "devices/gil_release.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/elementwise.h"
#include "ops/random/random.h"
#include "tensor/views.h"

namespace renga {
namespace {

const NormalizationKernels& kernels(const Array& x) { return normalization_kernels.on(x.device()); }

Array value_of(const Normalization& normalization) {
  const Array y = empty_like(normalization.x.array);
  kernels(y).normalize(normalization, y);
  return y;
}

bool has_activation(const Normalization& normalization) {
  return normalization.activation.kind != Activation::Kind::none;
}

// gy through dropout and activation, each as an operation of its own.
Variable separate_gradient(const Normalization& normalization, const Variable& gy) {
  Variable g = normalization.dropout
                   ? apply_dropout(gy, *normalization.dropout, memory_order(normalization.x.array))
                   : gy;
  if (!has_activation(normalization)) return g;
  Normalization before = normalization;
  before.dropout.reset();
  return activation_grad(normalization.activation, value_of(before), g);
}

// The VJP of an operation that was fused with a normalization. `step` has the activation or dropout
// of this operation.
Variable fused_vjp(const Normalization& step, const Variable& gy) {
  if (backprop_enabled()) return separate_gradient(step, gy);
  Normalization through = step;
  std::optional<Array> gys = fuse_gradient(gy, through);
  if (!gys) {
    if (!is_unshared(gy.array())) return separate_gradient(step, gy);
    gys = gy.array();
  }
  Variable gx(empty_like(step.x.array));
  gx.body()->defer(make_ref<DeferredGradient>(gx.metadata(), through, *gys));
  return gx;
}

// The operation `name` on x, deferred as `normalization`.
Variable record_fused(const char* name, const Variable& x, const Normalization& normalization,
                      const Normalization& step) {
  auto vjp_x = [step](const Variable& gy) { return fused_vjp(step, gy); };
  Variable y = record(name, empty_like(normalization.x.array), {{x, vjp_x}});
  y.body()->defer(make_ref<DeferredNormalization>(y.metadata(), normalization));
  return y;
}

const Normalization* pending_normalization(const Variable& x) {
  if (!x.defined()) return nullptr;
  const auto* deferred = dynamic_cast<const DeferredNormalization*>(x.body()->deferred());
  return deferred == nullptr ? nullptr : &deferred->normalization;
}

Variable fuse_activation(const char* name, const Variable& x, const Activation& activation) {
  const Normalization* const before = pending_normalization(x);
  if (before == nullptr || has_activation(*before) || before->dropout) return Variable();
  Normalization normalization = *before;
  normalization.activation = activation;
  if (!normalization.residual.defined()) {
    return record_fused(name, x, normalization, normalization);
  }
  // The backward pass needs the sign of y, so y is computed now.
  const Array y = value_of(normalization);
  auto vjp_x = [=](const Variable& gy) { return activation_grad(activation, y, gy); };
  return record(name, y, {{x, vjp_x}});
}

// a + residual, where a is a deferred normalization and nothing else.
Variable fuse_residual(const Variable& a, const Variable& residual) {
  const Normalization* const before = pending_normalization(a);
  if (before == nullptr || has_activation(*before) || before->dropout ||
      before->residual.defined()) {
    return Variable();
  }
  Normalization normalization = *before;
  const Array &x = normalization.x.array, &r = residual.metadata("add");
  if (r.device() != x.device() || r.dtype() != x.dtype() || r.shape() != x.shape() ||
      !same_layout(r, x)) {
    return Variable();
  }
  normalization.residual = residual.array();
  if (!is_internal(normalization.residual)) return Variable();
  Variable y = record_sum(a, residual, empty_like(x));
  y.body()->defer(make_ref<DeferredNormalization>(y.metadata(), normalization));
  return y;
}

Variable fuse_addition(const Variable& a, const Variable& b) {
  Variable y = fuse_residual(a, b);
  return y.defined() ? y : fuse_residual(b, a);
}

Variable fuse_dropout(const char* name, const Variable& x, const DropoutMask& mask) {
  const Normalization* const before = pending_normalization(x);
  if (before == nullptr || before->dropout || before->residual.defined()) return Variable();
  Normalization normalization = *before, step = normalization;
  normalization.dropout = step.dropout = mask;
  step.activation = {};
  return record_fused(name, x, normalization, step);
}

[[maybe_unused]] const bool registered = activation_fusions.add(fuse_activation) &&
                                         addition_fusions.add(fuse_addition) &&
                                         dropout_fusions.add(fuse_dropout);

}  // namespace

void DeferredNormalization::compute(const Array& y) const {
  kernels(y).normalize(normalization, y);
}

void DeferredGradient::compute(const Array& gx) const {
  const SettingScope off(&Settings::backprop, false);
  copy(separate_gradient(normalization, Variable(gy)).array(), gx);
}

void normalize_into(const Variable& y, const Normalization& normalization,
                    const UnsharedMemory& x) {
  // Deferring costs as much as a pass over a small array.
  if (x.holds() && y.size() >= GilRelease::kMinElements) {
    y.body()->defer(make_ref<DeferredNormalization>(y.metadata(), normalization));
  } else {
    kernels(y.array()).normalize(normalization, y.array());
  }
}

std::optional<Array> fuse_gradient(const Variable& gy, Normalization& normalization) {
  const auto* deferred = dynamic_cast<const DeferredGradient*>(gy.body()->deferred());
  if (deferred == nullptr || deferred->normalization.mean.data() != normalization.mean.data())
    return std::nullopt;
  const Normalization& after = deferred->normalization;
  // A kernel applies the dropout first, then the activation.
  if (normalization.dropout || (has_activation(normalization) && has_activation(after)))
    return std::nullopt;
  normalization.dropout = after.dropout;
  if (has_activation(after)) normalization.activation = after.activation;
  return deferred->gy;
}

}  // namespace renga
