#include "nn/initializers.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "nn/numpy_random.h"
#include "tensor/views.h"

namespace renga::initializers {
namespace {

void fill_normal(const Array& x, double size) {
  const Array values = empty(x.shape(), Dtype::float64);
  std::generate_n(values.as<double>(), values.size(),
                  [size] { return numpy_random().normal(0, size); });
  copy(values, x);
}

void fill_uniform(const Array& x, double size) {
  const Array values = empty(x.shape(), Dtype::float64);
  std::generate_n(values.as<double>(), values.size(),
                  [size] { return numpy_random().uniform(-size, size); });
  copy(values, x);
}

std::span<double> elements(const Array& x) {
  return {x.as<double>(), static_cast<std::size_t>(x.size())};
}

// Makes the rows of a matrix orthonormal, each from those before it: by the Gram-Schmidt process,
// twice, as what is left after the first time is not orthogonal enough (Giraud et al., 2005).
void orthonormalize(const Array& x) {
  const auto row = [&](std::int64_t i) { return elements(slice_view(x, 0, i, 1)); };
  const auto dot = [](auto a, auto b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  for (std::int64_t i = 0; i < x.shape(0); ++i) {
    const auto own = row(i);
    for (std::int64_t k = 0; k < 2 * i; ++k) {
      const auto before = row(k % i);
      const double share = dot(own, before);
      std::ranges::transform(own, before, own.begin(),
                             [share](double a, double b) { return a - share * b; });
    }
    const double norm = std::sqrt(dot(own, own));
    for (double& v : own) v /= norm;
  }
}

// Draws by `fill` with scale √(numerator / fans), where `fans` is a function of fan_in and fan_out.
Initializer of_fans(void (*fill)(const Array&, double), double scale, double numerator,
                    std::int64_t (*fans)(std::int64_t in, std::int64_t out)) {
  return [=](const Array& x) {
    require<std::invalid_argument>(x.ndim() >= 2,
                                   "get_fans: expected a shape of 2 axes or more, got ", x.shape());
    if (x.size() == 0) return;  // a weight without inputs has no fan_in
    const std::int64_t in = x.size() / x.shape(0), out = x.size() / x.shape(1);
    fill(x, scale * std::sqrt(numerator / static_cast<double>(fans(in, out))));
  };
}

std::int64_t fan_in(std::int64_t in, std::int64_t /*out*/) { return in; }
std::int64_t fan_out(std::int64_t /*in*/, std::int64_t out) { return out; }
std::int64_t both_fans(std::int64_t in, std::int64_t out) { return in + out; }

}  // namespace

Initializer constant(double value) {
  return [value](const Array& x) { fill(x, value); };
}
Initializer identity(double scale) {
  return [scale](const Array& x) {
    require<std::invalid_argument>(x.ndim() == 2 && x.shape(0) == x.shape(1),
                                   "Identity: expected a square matrix, got ", x.shape());
    const Array values = zeros(x.shape(), Dtype::float64);
    for (std::int64_t i = 0; i < x.shape(0); ++i) values.as<double>()[i * (x.shape(0) + 1)] = scale;
    copy(values, x);
  };
}
Initializer normal(double scale) {
  return [scale](const Array& x) { fill_normal(x, scale); };
}
Initializer uniform(double scale) {
  return [scale](const Array& x) { fill_uniform(x, scale); };
}
Initializer lecun_normal(double scale) { return of_fans(&fill_normal, scale, 1, &fan_in); }
Initializer lecun_uniform(double scale) { return of_fans(&fill_uniform, scale, 3, &fan_in); }
Initializer glorot_normal(double scale) { return of_fans(&fill_normal, scale, 2, &both_fans); }
Initializer glorot_uniform(double scale) { return of_fans(&fill_uniform, scale, 6, &both_fans); }
Initializer he_normal(double scale, Fan fan) {
  return of_fans(&fill_normal, scale, 2, fan == Fan::in ? &fan_in : &fan_out);
}
Initializer he_uniform(double scale) { return of_fans(&fill_uniform, scale, 6, &fan_in); }
Initializer orthogonal(double scale) {
  return [scale](const Array& x) {
    require<std::invalid_argument>(x.size() > 0, "Orthogonal: expected a non-empty array");
    const std::int64_t outputs = x.ndim() == 0 ? 1 : x.shape(0), inputs = x.size() / outputs;
    Array values = empty({outputs, inputs}, Dtype::float64);
    fill_normal(values, 1);
    if (outputs > inputs) values = contiguous(transpose_view(values, {1, 0}));
    orthonormalize(values);
    for (double& v : elements(values)) v *= scale;
    if (outputs > inputs) values = contiguous(transpose_view(values, {1, 0}));
    copy(reshape_view(values, x.shape()), x);
  };
}

}  // namespace renga::initializers
