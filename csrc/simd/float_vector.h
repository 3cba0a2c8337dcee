// Vectors of floats that are loaded from and stored to arrays of float or bfloat16.
#pragma once

#include "simd/bfloat16.h"

namespace renga::simd {

template <class Target>
[[gnu::always_inline]] inline Floats<Target> load_floats(const float* from) {
  return *reinterpret_cast<const typename VectorTypes<Target>::UnalignedFloats*>(from);
}
template <class Target>
[[gnu::always_inline]] inline Floats<Target> load_floats(const bfloat16* from) {
  return from_bfloat16<Target>(from);
}

template <class Target>
[[gnu::always_inline]] inline void store_floats(const Floats<Target>& v, float* to) {
  *reinterpret_cast<typename VectorTypes<Target>::UnalignedFloats*>(to) = v;
}
template <class Target>
[[gnu::always_inline]] inline void store_floats(const Floats<Target>& v, bfloat16* to) {
  to_bfloat16<Target>(v, to);
}

}  // namespace renga::simd
