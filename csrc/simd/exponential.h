// The exponential function of vectors of floats, to be compiled for the target of its caller.
#pragma once

#include "simd/bfloat16.h"

namespace renga::simd {

// e^x = p 2^n, where p is between 0.7 and 1.42 and n an integer.
template <class Target>
struct ScaledPower {
  Floats<Target> p;
  typename VectorTypes<Target>::Integers n;
};

template <class Target>
[[gnu::always_inline]] inline ScaledPower<Target> scaled_power(const Floats<Target>& x) {
  using V = Floats<Target>;
  constexpr float log2_e = 1.44269504f;
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
  return {p, __builtin_convertvector(n, typename VectorTypes<Target>::Integers)};
}

// p 2^n, where the power is a normal number.
template <class Target>
[[gnu::always_inline]] inline Floats<Target> times_power(
    const Floats<Target>& p, const typename VectorTypes<Target>::Integers& n) {
  return p * reinterpret_cast<Floats<Target>>((n + 127) << 23);
}

inline constexpr float kLeastExponent = -87.33654f;

// e^x for x <= 88, within 2 units in the last place; 0 below the least normal number.
template <class Target>
[[gnu::always_inline]] inline Floats<Target> exponential(const Floats<Target>& x) {
  const ScaledPower<Target> y = scaled_power<Target>(x);
  return x < kLeastExponent ? Floats<Target>{} : times_power<Target>(y.p, y.n);
}

// The same for every x; infinite where e^x is too large.
template <class Target>
[[gnu::always_inline]] inline Floats<Target> exponential_of_any(const Floats<Target>& x) {
  const ScaledPower<Target> y = scaled_power<Target>(x > 89.0f ? Floats<Target>{} + 89.0f : x);
  // 2^n may be too large where p 2^n is not.
  const auto half = y.n >> 1;
  const Floats<Target> e = times_power<Target>(times_power<Target>(y.p, half), y.n - half);
  return x < kLeastExponent ? Floats<Target>{} : e;
}

}  // namespace renga::simd
