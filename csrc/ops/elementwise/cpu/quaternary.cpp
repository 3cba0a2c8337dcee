#include "devices/gil_release.h"
#include "ops/elementwise/cpu/kernels.h"
#include "ops/elementwise/maps.h"
#include "simd/blocked_loop.h"
#include "simd/special.h"

namespace renga::elementwise_cpu {

void quaternary(Quaternary map, const Array& a, const Array& b, const Array& c, const Array& d,
                const Array& y) {
  const GilRelease work(y.size());
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
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
      simd::map_blocks<T>(y, 2, kernel, a, b, c, d);
    }
  });
}

}  // namespace renga::elementwise_cpu
