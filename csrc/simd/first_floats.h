// The first floats of a vector, where an array ends.
#pragma once

#include "simd/float_vector.h"
#include "simd/vector.h"

namespace renga::simd {

// Masks of the first `count` floats.
template <class Target>
[[gnu::always_inline]] inline typename Vector<Target, float>::M first_lanes(int count) {
  return Vector<Target, float>::M::of_bits((1U << count) - 1);
}

// These floats, and zeros; no others are read.
template <class Target>
[[gnu::always_inline]] inline Floats<Target> load_first(const float* from, int count) {
#if defined(__AVX__)
  const auto& memory = *reinterpret_cast<const float(*)[Target::width]>(from);
  const auto mask = first_lanes<Target>(count);
  Floats<Target> v;
  if constexpr (Target::has_mask_registers) {
    asm("vmovups %2, %0%{%1%}%{z%}" : "=v"(v) : "Yk"(mask.bits), "m"(memory));
  } else {
    asm("vmaskmovps %2, %1, %0" : "=x"(v) : "x"(mask.lanes), "m"(memory));
  }
#else
  Floats<Target> v = {};
  for (int i = 0; i < count; ++i) v[i] = from[i];
#endif
  return v;
}

// Writes these floats, and no others.
template <class Target>
[[gnu::always_inline]] inline void store_first(const Floats<Target>& v, float* to, int count) {
#if defined(__AVX__)
  auto& memory = *reinterpret_cast<float(*)[Target::width]>(to);
  const auto mask = first_lanes<Target>(count);
  if constexpr (Target::has_mask_registers) {
    asm("vmovups %2, %0%{%1%}" : "+m"(memory) : "Yk"(mask.bits), "v"(v));
  } else {
    asm("vmaskmovps %2, %1, %0" : "+m"(memory) : "x"(mask.lanes), "x"(v));
  }
#else
  for (int i = 0; i < count; ++i) to[i] = v[i];
#endif
}

}  // namespace renga::simd
