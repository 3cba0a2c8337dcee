#include "ops/normalization_fusion.h"

#include "autograd/node.h"
#include "devices/long_work.h"
#include "ops/activation.h"
#include "ops/elementwise.h"

namespace renga {
namespace {

const NormalizationKernels& kernels(const Array& x) { return normalization_kernels.on(x.device()); }

Array value_of(const Normalization& of) {
  const Array y = empty_like(of.x.array);
  kernels(y).normalize(of, y);
  return y;
}

// What the activation alone does with gy.
Variable separate_gradient(const Normalization& of, const Variable& gy) {
  return activation_grad(of.activation, value_of(of), gy);
}

}  // namespace

void DeferredNormalization::compute(const Array& y) const { kernels(y).normalize(of, y); }

void DeferredGradient::compute(const Array& gx) const {
  const BackpropMode off(false);
  copy(separate_gradient(of, Variable(gy)).array(), gx);
}

void normalize_into(const Variable& y, const Normalization& of, bool x_stays) {
  // The work of deferring costs as much as a pass over a small array.
  if (x_stays && y.size() >= LongWork::worth) {
    y.body()->defer(make_ref<DeferredNormalization>(of));
  } else {
    kernels(y.array()).normalize(of, y.array());
  }
}

Variable activate_deferred(const char* name, const Variable& x, Activation activation) {
  const auto* before = dynamic_cast<const DeferredNormalization*>(x.body()->deferred());
  if (before == nullptr || before->of.activation.kind != Activation::Kind::none) return Variable();
  Normalization of = before->of;
  of.activation = activation;
  auto to_x = [of](const Variable& gy) {
    if (backprop_enabled() || !is_unshared(gy.array())) return separate_gradient(of, gy);
    Variable gx(empty_like(of.x.array));
    gx.body()->defer(make_ref<DeferredGradient>(of, gy.array()));
    return gx;
  };
  Variable y = record(name, empty_like(of.x.array), {{x, to_x}});
  y.body()->defer(make_ref<DeferredNormalization>(of));
  return y;
}

std::optional<Array> take_gradient(const Variable& gy, Normalization& of) {
  const auto* deferred = dynamic_cast<const DeferredGradient*>(gy.body()->deferred());
  if (deferred == nullptr || deferred->of.mean.data() != of.mean.data()) return std::nullopt;
  of.activation = deferred->of.activation;
  return deferred->gy;
}

}  // namespace renga
