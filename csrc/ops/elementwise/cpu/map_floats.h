// Loops of the functions in maps.h over floats.
#pragma once

#include "ops/elementwise/maps.h"
#include "simd/blocked_loop.h"
#include "simd/special.h"

namespace renga::elementwise_cpu {

// y = f(x...), f of vectors. Those of functions that xsimd computes are of one
// width.
template <bool of_any_width, class T, class F, class... In>
void map_floats(const simd::Rows<T>& y, std::int64_t rows, std::int64_t n, const F& f,
                const simd::Rows<In>&... x) {
  if constexpr (of_any_width) {
    simd::map_vectors(y, rows, n, f, x...);
  } else {
    simd::map_on<simd::Avx2>(y, rows, n, f, x...);
  }
}

}  // namespace renga::elementwise_cpu
