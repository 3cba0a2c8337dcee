#include "devices/gil_release.h"
#include "ops/elementwise/cpu/kernels.h"
#include "ops/elementwise/integer_maps.h"
#include "ops/elementwise/maps.h"
#include "simd/blocked_loop.h"
#include "simd/special.h"

namespace renga::elementwise_cpu {
namespace {

template <Unary map, class T>
[[gnu::noinline]] void float_unary(Compute<T> p, Compute<T> q, const simd::Rows<const T>& x,
                                   const simd::Rows<T>& y, std::int64_t rows, std::int64_t n) {
  simd::map_vectors(
      y, rows,
      n, [=](const auto& v) __attribute__((always_inline)) { return maps::unary<map>(v, p, q); },
      x);
}

// Whether a function takes some times as long as an exponential function does.
constexpr bool is_long(Unary map) {
  return map == Unary::power || map == Unary::power_of ||
         (map >= Unary::erfc && map <= Unary::digamma);
}

// Plain loops, which the compiler vectorizes.
template <Unary map, class T>
void integer_unary(const T* x, T* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = integers::unary<map>(x[i]);
}

// Elementary operations per element, for parallel_walk.
std::int64_t cost_of(Unary map) {
  if (is_long(map)) return 40;
  return map < Unary::exp || map == Unary::relu || map == Unary::leaky_relu ? 1 : 8;
}

}  // namespace

void unary(Unary map, double p, double q, const Array& x, const Array& y) {
  const GilRelease work(y.size());
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const auto kernel = [=]<class S>(const simd::Rows<const S>& in, const simd::Rows<S>& out,
                                     std::int64_t rows, std::int64_t n) {
      if constexpr (std::is_floating_point_v<C>) {
        maps::visit_map<maps::kLastUnary>(map, [=]<Unary m>() {
          if constexpr (is_half<S> && is_long(m)) {
            const auto floats = [=](const auto&... operands) {
              float_unary<m, float>(p, q, operands...);
            };
            simd::map_in_floats(floats, out, rows, n, in);
          } else {
            float_unary<m, S>(C(p), C(q), in, out, rows, n);
          }
        });
      } else if constexpr (!std::is_same_v<C, bool>) {
        maps::visit_map<integers::kLastUnary>(map, [=]<Unary m>() {
          for (std::int64_t r = 0; r < rows; ++r) integer_unary<m>(in.row(r), out.row(r), n);
        });
      }
    };
    simd::map_blocks<T>(y, cost_of(map), kernel, x);
  });
}

}  // namespace renga::elementwise_cpu
