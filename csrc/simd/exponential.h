// The exponential function of vectors of floats, to be compiled for the target of its caller.
#pragma once

#include "simd/bfloat16.h"

namespace renga::simd {

// e^x for x <= 88, within 2 units in the last place; 0 below the least normal number.
template <class Target>
[[gnu::always_inline]] inline Floats<Target> exponential(const Floats<Target>& x) {
  using V = Floats<Target>;
  using Integers = typename VectorTypes<Target>::Integers;
  constexpr float log2_e = 1.44269504f, least = -87.33654f;
  constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;  // high has 9 bits
  constexpr float round = 0x1.8p23f;  // added and subtracted again, it leaves an integer
  const V n = (x * log2_e + round) - round;
  const V r = (x - n * ln2_high) - n * ln2_low;  // at most ln(2) / 2
  // Taylor's series.
  V p = r * (1.0f / 5040) + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const Integers power = (__builtin_convertvector(n, Integers) + 127) << 23;
  const V y = p * reinterpret_cast<V>(power);
  return x < least ? V{} : y;
}

}  // namespace renga::simd
