#include <algorithm>
#include <array>

#include "devices/gil_release.h"
#include "ops/elementwise/cpu/kernels.h"
#include "ops/elementwise/cpu/mixed_runs.h"
#include "ops/elementwise/maps.h"
#include "simd/blocked_loop.h"
#include "simd/special.h"

namespace renga::elementwise_cpu {

void quaternary(Quaternary map, const Array& a, const Array& b, const Array& c, const Array& d,
                const Array& y) {
  const GilRelease work(y.size());
  const auto kernel = [=]<class S>(const simd::Rows<const S>& u, const simd::Rows<const S>& v,
                                   const simd::Rows<const S>& w, const simd::Rows<const S>& x,
                                   const simd::Rows<S>& to, std::int64_t rows, std::int64_t n) {
    maps::visit_map<maps::kLastQuaternary>(map, [=]<Quaternary m>() {
      const auto f = [](const auto&... in) __attribute__((always_inline)) {
        return maps::quaternary<m>(in...);
      };
      simd::map_vectors(to, rows, n, f, u, v, w, x);
    });
  };
  const auto is_alike = [&](const Array* x) { return x->dtype() == y.dtype(); };
  if (!std::ranges::all_of(std::array{&a, &b, &c, &d}, is_alike)) {
    require(y.size() == 0 || map_mixed_runs(y, 2, kernel, a, b, c, d) ||
                simd::map_mixed_blocks(y, 2, kernel, a, b, c, d),
            "quaternary: expected a result without gaps for operands of mixed dtypes");
    return;
  }
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) simd::map_blocks<T>(y, 2, kernel, a, b, c, d);
  });
}

}  // namespace renga::elementwise_cpu
