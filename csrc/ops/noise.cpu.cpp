#include <cmath>
#include <numbers>

#include "devices/long_work.h"
#include "ops/noise.h"
#include "ops/philox.h"
#include "tensor/strided_loop.h"

namespace renga {
namespace {

// Draws the numbers for places begin..begin+n in turn and calls body(i, number).
template <class Body>
void draw(std::uint64_t seed, std::int64_t begin, std::int64_t n, const Body& body) {
  for (std::int64_t i = 0; i < n;) {
    const auto four = philox(seed, static_cast<std::uint64_t>(begin + i) / 4);
    for (auto lane = static_cast<std::size_t>((begin + i) % 4); lane < 4 && i < n; ++lane, ++i) {
      body(i, four[lane]);
    }
  }
}

void dropout_cpu(const Array& x, double ratio, double scale, std::uint64_t seed, const Array& y) {
  const LongWork work(y.size());
  const auto threshold = static_cast<std::uint32_t>(std::min(std::round(ratio * 0x1p32), 0x1p32 - 1));
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      parallel_walk(make_loop<2>({&y, &x}), 12, [&](std::int64_t n, const auto& p, const auto& s) {
        const std::int64_t place = (p[0] - y.data()) / static_cast<std::int64_t>(sizeof(T));
        draw(seed, place, n, [&](std::int64_t i, std::uint32_t number) {
          const auto v = static_cast<Compute<T>>(*reinterpret_cast<const T*>(p[1] + i * s[1]));
          *reinterpret_cast<T*>(p[0] + i * s[0]) =
              T(number >= threshold ? v * static_cast<Compute<T>>(scale) : Compute<T>(0));
        });
      });
    }
  });
}

// Box and Muller: two uniform numbers make two normal ones.
template <class T>
void normal_pairs(std::uint64_t seed, T* y, std::int64_t n, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const auto four = philox(seed, static_cast<std::uint64_t>(i));
    for (std::int64_t pair = 0; pair < 2; ++pair) {
      const auto k = static_cast<std::size_t>(2 * pair);
      const double radius = std::sqrt(-2 * std::log((four[k] + 0.5) * 0x1p-32));
      const double angle = 2 * std::numbers::pi * (four[k + 1] * 0x1p-32);
      const std::int64_t at = 4 * i + 2 * pair;
      if (at < n) y[at] = T(static_cast<Compute<T>>(radius * std::cos(angle)));
      if (at + 1 < n) y[at + 1] = T(static_cast<Compute<T>>(radius * std::sin(angle)));
    }
  }
}

void normal_cpu(std::uint64_t seed, const Array& y) {
  const LongWork work(y.size());
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      parallel_for((y.size() + 3) / 4, 100, [&](std::int64_t begin, std::int64_t end) {
        normal_pairs(seed, y.as<T>(), y.size(), begin, end);
      });
    }
  });
}

[[maybe_unused]] const bool registered = noise_kernels.add(0, {dropout_cpu, normal_cpu});

}  // namespace
}  // namespace renga
