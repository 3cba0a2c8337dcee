// Layer and RMS normalization: checks, forward and gradients. Kernels are in cpu/layer.cpp.
#include "ops/normalization/layer.h"

#include <algorithm>
#include <optional>

#include "autograd/node.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/math.h"
#include "ops/normalization/normalization.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "ops/shape/one_device.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<RowNormalizationKernels> row_normalization_kernels{"row_normalization"};

namespace {

struct Operands {
  Variable x, gamma;
  std::optional<Variable> beta;
  double eps;
};

void check(const char* op, const Operands& o) {
  require_one_device(op, o.x.device(op), o.gamma.device(op));
  if (o.beta) require_one_device(op, o.x.device(), o.beta->device(op));
  const int added = o.x.ndim() - o.gamma.ndim();
  bool fits = added >= 0 && o.gamma.ndim() > 0;
  for (int axis = 0; fits && axis < o.gamma.ndim(); ++axis) {
    fits = o.gamma.shape(axis) == o.x.shape(added + axis);
  }
  require(fits, op, ": expected parameters of the shape of x's last axes, got ", o.x.shape(),
          " and ", o.gamma.shape());
  // Activations may be narrower than parameters.
  const Dtype x = o.x.dtype(), gamma = o.gamma.dtype();
  const bool narrower = gamma == Dtype::float32 && is_float(x) && x < Dtype::float32;
  require(is_float(x) && (are_compatible(x, gamma) || narrower), op,
          ": expected operands of one float dtype, got ", x, " and ", gamma);
  if (!o.beta) return;
  require(o.beta->shape() == o.gamma.shape() && are_compatible(o.beta->dtype(), gamma), op,
          ": expected gamma and beta of one shape and dtype, got ", o.gamma.shape(), " and ",
          o.beta->shape(), ", ", gamma, " and ", o.beta->dtype());
}

// The last axes, which gamma has.
Axes reduced_axes(const Operands& o) {
  Axes axes;
  for (int axis = o.x.ndim() - o.gamma.ndim(); axis < o.x.ndim(); ++axis) axes.push_back(axis);
  return axes;
}

// Computes the gradients of x, gamma and beta with operations.
std::vector<Variable> composed_gradients(const Operands& o, const Variable& given_gy) {
  const Dtype dtype = wide_dtype(o.x.dtype());
  const Variable x = cast(o.x, dtype), gy = cast(given_gy, dtype);
  const Axes axes = reduced_axes(o);
  const double columns = static_cast<double>(std::max<std::int64_t>(o.gamma.size(), 1));
  const auto mean = [&](const Variable& v) { return multiply(sum(v, axes, true), 1 / columns); };
  const Variable centred = o.beta ? subtract(x, mean(x)) : x;
  const Variable inv_std = rsqrt(add(mean(square(centred)), o.eps));
  const Variable normalized = multiply(centred, inv_std);
  const Variable g = multiply(gy, cast(o.gamma, dtype));
  const Variable straight = o.beta ? subtract(g, mean(g)) : g;
  const Variable gx =
      multiply(inv_std, subtract(straight, multiply(normalized, mean(multiply(g, normalized)))));
  const auto to_parameter = [&](const Variable& v) {
    return cast(sum_to(v, o.gamma.shape()), o.gamma.dtype());
  };
  std::vector<Variable> gxs{cast(gx, o.x.dtype()), to_parameter(multiply(gy, normalized))};
  if (o.beta) gxs.push_back(to_parameter(gy));
  return gxs;
}

Variable normalize(const char* op, const char* name, const Operands& o) {
  check(op, o);
  const Dtype dtype = wide_dtype(o.x.dtype());
  const std::int64_t columns = o.gamma.size();
  const std::int64_t rows = columns == 0 ? 0 : o.x.size() / columns;
  const auto vector = [&](const Variable& v) {
    return reshape_view(contiguous(cast(v.array(), dtype)), {columns});
  };
  const auto matrix = [rows, columns](const Array& x) {
    return reshape_view(contiguous(x), {rows, columns});
  };
  const RowNormalization normalization{matrix(o.x.array()), vector(o.gamma),
                                       o.beta ? vector(*o.beta) : Array(), o.eps};
  const Device device = o.x.device();
  const Array y = empty({rows, columns}, o.x.dtype(), device);
  const Array mean = empty({rows}, dtype, device), inv_std = empty({rows}, dtype, device);
  row_normalization_kernels.on(device).normalize(normalization, y, mean, inv_std);
  std::vector<Variable> inputs{o.x, o.gamma};
  if (o.beta) inputs.push_back(*o.beta);
  auto back = [=](std::span<const Variable> gys, std::span<const int>, Node&) {
    if (backprop_enabled()) return composed_gradients(o, gys[0]);
    const Array gx = empty({rows, columns}, o.x.dtype(), device);
    const Array ggamma = empty({columns}, dtype, device);
    const Array gbeta = o.beta ? empty({columns}, dtype, device) : Array();
    row_normalization_kernels.on(device).gradients(normalization, mean, inv_std,
                                                   matrix(gys[0].array()), gx, ggamma, gbeta);
    const auto parameter = [&](const Array& g) {
      return Variable(cast(reshape_view(g, o.gamma.shape()), o.gamma.dtype()));
    };
    std::vector<Variable> gxs{Variable(reshape_view(gx, o.x.shape())), parameter(ggamma)};
    if (o.beta) gxs.push_back(parameter(gbeta));
    return gxs;
  };
  const Array result = reshape_view(y, o.x.shape());
  return record_all(name, {&result, 1}, inputs, std::move(back))[0];
}

}  // namespace

Variable layer_normalization(const Variable& x, const Variable& gamma, const Variable& beta,
                             double eps) {
  return normalize("layer_normalization", "LayerNormalization", {x, gamma, beta, eps});
}

Variable rms_normalization(const Variable& x, const Variable& gamma, double eps) {
  return normalize("rms_normalization", "RMSNormalization", {x, gamma, {}, eps});
}

}  // namespace renga
