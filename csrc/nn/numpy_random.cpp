#include "nn/numpy_random.h"

#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

namespace renga {

double NumpyRandom::random_sample() {
  const std::uint32_t high = static_cast<std::uint32_t>(engine_()) >> 5;
  const std::uint32_t low = static_cast<std::uint32_t>(engine_()) >> 6;
  return (high * 0x1p26 + low) / 0x1p53;
}

double NumpyRandom::uniform(double low, double high) {
  return low + (high - low) * random_sample();
}

// Marsaglia's polar method, which makes two numbers at a time.
double NumpyRandom::normal(double loc, double scale) {
  if (std::exchange(has_normal_, false)) return loc + scale * next_normal_;
  double x = 0, y = 0, square = 0;
  do {
    x = 2 * random_sample() - 1;
    y = 2 * random_sample() - 1;
    square = x * x + y * y;
  } while (square >= 1 || square == 0);
  const double factor = std::sqrt(-2 * std::log(square) / square);
  next_normal_ = factor * x;
  has_normal_ = true;
  return loc + scale * (factor * y);
}

std::uint64_t NumpyRandom::up_to(std::uint64_t largest) {
  const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero(largest);
  std::uint64_t value = 0;
  do {
    value = engine_();
    if (largest >> 32 != 0) value = value << 32 | engine_();
    value &= mask;
  } while (value > largest);
  return value;
}

std::vector<std::int64_t> NumpyRandom::permutation(std::int64_t n) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[up_to(i)]);
  return order;
}

std::uint64_t NumpyRandom::draw_seed() {
  return static_cast<std::uint64_t>(random_sample() * 0x1p53);
}

NumpyRandom& numpy_random() {
  static NumpyRandom generator(std::random_device{}());
  return generator;
}

}  // namespace renga
