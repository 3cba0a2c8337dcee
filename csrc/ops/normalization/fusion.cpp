#include "ops/normalization/fusion.h"

#include "autograd/node.h"
#include "devices/gil_release.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/elementwise.h"
#include "ops/random/random.h"

namespace renga {
namespace {

const NormalizationKernels& kernels(const Array& x) { return normalization_kernels.on(x.device()); }

Array value_of(const Normalization& of) {
  const Array y = empty_like(of.x.array);
  kernels(y).normalize(of, y);
  return y;
}

bool activates(const Normalization& of) { return of.activation.kind != Activation::Kind::none; }

// What activation and dropout do with gy, each by itself.
Variable separate_gradient(const Normalization& of, const Variable& gy) {
  const Variable g = of.drop ? dropped(gy, *of.drop, memory_order(of.x.array)) : gy;
  if (!activates(of)) return g;
  Normalization before = of;
  before.drop.reset();
  return activation_grad(of.activation, value_of(before), g);
}

// The gradient of the operation that fused with `of` and added `part` to it.
Variable gradient_through(const Normalization& part, const Variable& gy) {
  if (backprop_enabled()) return separate_gradient(part, gy);
  Normalization through = part;
  std::optional<Array> gys = take_gradient(gy, through);
  if (!gys) {
    if (!is_unshared(gy.array())) return separate_gradient(part, gy);
    gys = gy.array();
  }
  Variable gx(empty_like(part.x.array));
  gx.body()->defer(make_ref<DeferredGradient>(gx.metadata(), through, *gys));
  return gx;
}

Variable take_up(const char* name, const Variable& x, const Normalization& of,
                 const Normalization& part) {
  auto to_x = [part](const Variable& gy) { return gradient_through(part, gy); };
  Variable y = record(name, empty_like(of.x.array), {{x, to_x}});
  y.body()->defer(make_ref<DeferredNormalization>(y.metadata(), of));
  return y;
}

Variable fuse_activation(const char* name, const Variable& x, const Activation& activation) {
  const auto* before = dynamic_cast<const DeferredNormalization*>(x.body()->deferred());
  if (before == nullptr || activates(before->of) || before->of.drop) return Variable();
  Normalization of = before->of;
  of.activation = activation;
  return take_up(name, x, of, of);
}

Variable fuse_dropout(const char* name, const Variable& x, const Drop& drop) {
  const auto* before = dynamic_cast<const DeferredNormalization*>(x.body()->deferred());
  if (before == nullptr || before->of.drop) return Variable();
  Normalization of = before->of, part = of;
  of.drop = part.drop = drop;
  part.activation = {};
  return take_up(name, x, of, part);
}

[[maybe_unused]] const bool registered =
    activation_fusions.add(fuse_activation) && dropout_fusions.add(fuse_dropout);

}  // namespace

void DeferredNormalization::compute(const Array& y) const { kernels(y).normalize(of, y); }

void DeferredGradient::compute(const Array& gx) const {
  const BackpropMode off(false);
  copy(separate_gradient(of, Variable(gy)).array(), gx);
}

void normalize_into(const Variable& y, const Normalization& of, const UnsharedMemory& x) {
  // The work of deferring costs as much as a pass over a small array.
  if (x.holds() && y.size() >= GilRelease::kMinElements) {
    y.body()->defer(make_ref<DeferredNormalization>(y.metadata(), of));
  } else {
    kernels(y.array()).normalize(of, y.array());
  }
}

std::optional<Array> take_gradient(const Variable& gy, Normalization& of) {
  const auto* deferred = dynamic_cast<const DeferredGradient*>(gy.body()->deferred());
  if (deferred == nullptr || deferred->of.mean.data() != of.mean.data()) return std::nullopt;
  const Normalization& after = deferred->of;
  // A kernel does the dropout's part first, then the activation's.
  if (of.drop || (activates(of) && activates(after))) return std::nullopt;
  of.drop = after.drop;
  if (activates(after)) of.activation = after.activation;
  return deferred->gy;
}

}  // namespace renga
