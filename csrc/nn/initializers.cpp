#include "nn/initializers.h"

#include <algorithm>
#include <cmath>

#include "nn/numpy_random.h"

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
std::int64_t both_fans(std::int64_t in, std::int64_t out) { return in + out; }

}  // namespace

Initializer constant(double value) {
  return [value](const Array& x) { fill(x, value); };
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
Initializer he_normal(double scale) { return of_fans(&fill_normal, scale, 2, &fan_in); }
Initializer he_uniform(double scale) { return of_fans(&fill_uniform, scale, 6, &fan_in); }

}  // namespace renga::initializers
