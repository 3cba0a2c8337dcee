#include "ops/random/random.h"

#include "autograd/node.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/math.h"
#include "ops/shape/manipulation.h"

namespace renga {

constinit KernelTable<RandomKernels> random_kernels{"random"};
constinit FusionRegistry<Variable(const char*, const Variable&, const DropoutMask&)>
    dropout_fusions{};

Variable apply_dropout(const Variable& x, const DropoutMask& mask, const Axes& order) {
  const Array y = empty_in_order(x.shape(), order, x.dtype(), x.device());
  random_kernels.on(y.device()).dropout(x.array(), mask, y);
  auto vjp_x = [=](const Variable& gy) { return apply_dropout(gy, mask, order); };
  return record("Dropout", y, {{x, vjp_x}});
}

Variable dropout(const Variable& x, double ratio, std::uint64_t seed) {
  require(is_float(x.dtype()), "dropout: expected a float dtype, got ", x.dtype());
  require<std::invalid_argument>(ratio >= 0 && ratio < 1, "dropout: expected 0 <= ratio < 1, got ",
                                 ratio);
  const DropoutMask mask{empty({(x.size() + 63) / 64 + 1}, Dtype::int64, x.device()),
                         1 / (1 - ratio)};
  random_kernels.on(x.device()).dropout_mask(ratio, seed, mask.bits);
  if (Variable y = dropout_fusions.apply("Dropout", x, mask); y.defined()) return y;
  return apply_dropout(x, mask, memory_order(x.array()));
}

Variable gaussian(const Variable& centre, const Variable& scale, std::uint64_t seed) {
  const auto [mean, ln_var] = in_one_dtype("gaussian", centre, scale);
  require(mean.shape() == ln_var.shape() && mean.dtype() == ln_var.dtype(),
          "gaussian: expected mean and ln_var of one shape and dtype, got ", mean.shape(), " ",
          mean.dtype(), " and ", ln_var.shape(), " ", ln_var.dtype());
  const Array noise = empty(mean.shape(), mean.dtype(), mean.device());
  random_kernels.on(noise.device()).normal(seed, noise);
  return add(mean, multiply(exp(multiply(ln_var, 0.5)), Variable(noise)));
}

Variable uniform(const Variable& x, double low, double high, std::uint64_t seed) {
  require(is_float(x.dtype()), "uniform: expected a float dtype, got ", x.dtype());
  const Array share = empty(x.shape(), x.dtype(), x.device());
  random_kernels.on(share.device()).uniform(seed, share);
  const Array noise = apply(Unary::add, apply(Unary::multiply, share, high - low), low);
  return add(x, Variable(noise));
}

Variable gumbel(const Variable& x, std::uint64_t seed) {
  require(is_float(x.dtype()), "gumbel: expected a float dtype, got ", x.dtype());
  // 16-bit floats would round shares to 0 and 1.
  const Dtype dtype = wide_dtype(x.dtype());
  const Array share = empty(x.shape(), dtype, x.device());
  random_kernels.on(share.device()).uniform(seed, share);
  const Array exponential = apply(Unary::negative, apply(Unary::log, share));
  const Array noise = apply(Unary::negative, apply(Unary::log, exponential));
  return add(x, Variable(cast(noise, x.dtype())));
}

}  // namespace renga
