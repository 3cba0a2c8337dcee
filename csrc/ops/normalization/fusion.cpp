#include "ops/normalization/fusion.h"

#include "autograd/node.h"
#include "devices/gil_release.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/elementwise.h"
#include "ops/random/random.h"
#include "ops/shape/image.h"
#include "tensor/views.h"

namespace renga {
namespace {

const NormalizationKernels& kernels(const Array& x) { return normalization_kernels.on(x.device()); }

Array value_of(const Normalization& normalization) {
  const Array y = empty_like(normalization.x.array);
  kernels(y).normalize(normalization, y);
  return y;
}

bool is_recorded(const Variable& x) { return backprop_enabled() && x.requires_grad(); }

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

// Defers y as `normalization`, which continues `before`.
void defer(const Variable& y, const Normalization& normalization,
           const DeferredNormalization& before) {
  const Array& array = y.metadata();
  y.body()->defer(before.source()
                      ? make_ref<DeferredNormalization>(array, normalization, before.source())
                      : make_ref<DeferredNormalization>(array, normalization));
}

// The operation `name` on x, deferred as `normalization`.
Variable record_fused(const char* name, const Variable& x, const Normalization& normalization,
                      const Normalization& step, const DeferredNormalization& before) {
  auto vjp_x = [step](const Variable& gy) { return fused_vjp(step, gy); };
  Variable y = record(name, empty_like(normalization.x.array), {{x, vjp_x}});
  defer(y, normalization, before);
  return y;
}

// Held, because x drops its computation when that has run.
Ref<const DeferredNormalization> pending_normalization(const Variable& x) {
  if (!x.defined()) return nullptr;
  return Ref<const DeferredNormalization>(
      dynamic_cast<const DeferredNormalization*>(x.body()->deferred()));
}

Variable fuse_activation(const char* name, const Variable& x, const Activation& activation) {
  const Ref<const DeferredNormalization> pending = pending_normalization(x);
  if (!pending) return Variable();
  Normalization normalization = pending->normalization;
  if (has_activation(normalization) || normalization.dropout) return Variable();
  normalization.activation = activation;
  if (!normalization.residual.defined() || !is_recorded(x)) {
    return record_fused(name, x, normalization, normalization, *pending);
  }
  // The backward pass needs the sign of y, so y is computed now.
  const Array y = value_of(normalization);
  auto vjp_x = [=](const Variable& gy) { return activation_grad(activation, y, gy); };
  return record(name, y, {{x, vjp_x}});
}

// a + residual, where a is a deferred normalization and nothing else.
Variable fuse_residual(const Variable& a, const Variable& residual) {
  const Ref<const DeferredNormalization> pending = pending_normalization(a);
  if (!pending) return Variable();
  Normalization normalization = pending->normalization;
  if (has_activation(normalization) || normalization.dropout || normalization.residual.defined()) {
    return Variable();
  }
  // What has a graph keeps x.
  if (pending->source() && is_recorded(residual)) return Variable();
  const Array &x = normalization.x.array, &r = residual.metadata("add");
  if (r.device() != x.device() || r.dtype() != x.dtype() || r.shape() != x.shape() ||
      !same_layout(r, x)) {
    return Variable();
  }
  normalization.residual = residual.array();
  if (!is_internal(normalization.residual)) return Variable();
  Variable y = record_sum(a, residual, empty_like(x));
  defer(y, normalization, *pending);
  return y;
}

Variable fuse_addition(const Variable& a, const Variable& b) {
  Variable y = fuse_residual(a, b);
  return y.defined() ? y : fuse_residual(b, a);
}

Variable fuse_dropout(const char* name, const Variable& x, const DropoutMask& mask) {
  const Ref<const DeferredNormalization> pending = pending_normalization(x);
  // A mask belongs to all elements.
  if (!pending || pending->source()) return Variable();
  Normalization normalization = pending->normalization, step = normalization;
  if (normalization.dropout || normalization.residual.defined()) return Variable();
  normalization.dropout = step.dropout = mask;
  step.activation = {};
  return record_fused(name, x, normalization, step, *pending);
}

[[maybe_unused]] const bool registered = activation_fusions.add(fuse_activation) &&
                                         addition_fusions.add(fuse_addition) &&
                                         dropout_fusions.add(fuse_dropout);

}  // namespace

void DeferredNormalization::transform(const Array& x, const Array& y, std::int64_t first,
                                      std::int64_t begin, std::int64_t end) const {
  Normalization part = normalization;
  part.x.array = x;
  if (end - begin == array().size()) return kernels(y).normalize(part, y);
  ChannelLayout& layout = part.x.layout;
  layout.outer = (end - begin) / (layout.channels * layout.inner);
  part.x.array = elements_of(x, begin, end);
  if (part.residual.defined()) {
    part.residual = elements_of(part.residual, first + begin, first + end);
  }
  kernels(y).normalize(part, elements_of(y, begin, end));
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

Ref<const DeferredParts> parts_to_normalize(const Variable& x, const Axes& reduced) {
  const Ref<const DeferredParts> parts = pending_parts(x.body()->deferred());
  if (!parts) return nullptr;
  Axes pixels = channels_last_axes(x.ndim());
  pixels.pop_back();
  const bool fits = reduced == pixels && parts->unit() == x.shape(1) &&
                    channels_last_view(x.metadata()).is_contiguous();
  return fits ? parts : nullptr;
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
