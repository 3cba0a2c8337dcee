// Polynomials of numbers and of vectors.
#pragma once

#include <cstddef>

#include "devices/host_device.h"

namespace renga {

// Coefficients from the highest power on.
template <class V, class C, std::size_t n>
RENGA_INLINE V polynomial(const V& x, const C (&coefficients)[n]) {
  V p(coefficients[0]);
#pragma GCC unroll 32
  for (std::size_t k = 1; k < n; ++k) p = p * x + V(coefficients[k]);
  return p;
}

}  // namespace renga
