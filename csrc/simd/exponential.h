// The exponential function of vectors of floats, to be compiled for the target of its caller.
#pragma once

#include "simd/bfloat16.h"

namespace renga::simd {

// e^x = p 2^n, where p is between 0.7 and 1.42 and n an integer.
template <class Target>
struct ScaledPower {
  Floats<Target> p, n;
};

// x = r + n log 2, where n is an integer and |r| at most log(2) / 2.
template <class Target>
struct Reduced {
  Floats<Target> r, n;
};
template <class Target>
[[gnu::always_inline]] inline Reduced<Target> reduced(const Floats<Target>& x) {
  constexpr float log2_e = 1.44269504f;
  constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;  // high has 9 bits
  constexpr float round = 0x1.8p23f;  // added and subtracted again, it leaves an integer
  const Floats<Target> n = (x * log2_e + round) - round;
  return {(x - n * ln2_high) - n * ln2_low, n};
}

// (e^r - 1 - r) / r² by Taylor's series.
template <class Target>
[[gnu::always_inline]] inline Floats<Target> exponential_rest(const Floats<Target>& r) {
  Floats<Target> p = r * (1.0f / 5040) + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  return p * r + 0.5f;
}

template <class Target>
[[gnu::always_inline]] inline ScaledPower<Target> scaled_power(const Reduced<Target>& x) {
  return {(exponential_rest<Target>(x.r) * x.r + 1.0f) * x.r + 1.0f, x.n};
}
template <class Target>
[[gnu::always_inline]] inline ScaledPower<Target> scaled_power(const Floats<Target>& x) {
  return scaled_power<Target>(reduced<Target>(x));
}

#if defined(__x86_64__)
// p 2^n of any size, in one instruction.
template <class V>
[[gnu::always_inline]] inline V scale(const V& p, const V& n) {
  V y;
  asm("vscalefps %2, %1, %0" : "=v"(y) : "v"(p), "v"(n));
  return y;
}
#endif

// p 2^n, where the power is a normal number.
template <class Target>
[[gnu::always_inline]] inline Floats<Target> times_power(const Floats<Target>& p,
                                                         const Floats<Target>& n) {
#if defined(__x86_64__)
  if constexpr (Target::has_mask_registers) return scale(p, n);
#endif
  const auto integers = __builtin_convertvector(n, typename VectorTypes<Target>::Integers);
  return p * reinterpret_cast<Floats<Target>>((integers + 127) << 23);
}

inline constexpr float kLeastExponent = -87.33654f;

// e^x for x <= 88, within 2 units in the last place; 0 below the least normal number.
template <class Target>
[[gnu::always_inline]] inline Floats<Target> exponential(const Floats<Target>& x) {
  const ScaledPower<Target> y = scaled_power<Target>(x);
  return x < kLeastExponent ? Floats<Target>{} : times_power<Target>(y.p, y.n);
}

// p 2^n for n from -250 to 250, where 2^n may be too large or small, but p 2^n is not.
template <class Target>
[[gnu::always_inline]] inline Floats<Target> times_any_power(const Floats<Target>& p,
                                                             const Floats<Target>& n) {
#if defined(__x86_64__)
  if constexpr (Target::has_mask_registers) return scale(p, n);
#endif
  const auto integers = __builtin_convertvector(n, typename VectorTypes<Target>::Integers);
  const auto half = integers >> 1, rest = integers - half;
  return p * reinterpret_cast<Floats<Target>>((half + 127) << 23) *
         reinterpret_cast<Floats<Target>>((rest + 127) << 23);
}

// Computes e^x for every x; it is infinite where e^x is too large.
template <class Target>
[[gnu::always_inline]] inline Floats<Target> exponential_of_any(const Floats<Target>& x) {
  const ScaledPower<Target> y = scaled_power<Target>(x > 89.0f ? Floats<Target>{} + 89.0f : x);
  const Floats<Target> e = times_any_power<Target>(y.p, y.n);
  return x < kLeastExponent ? Floats<Target>{} : e;
}

// e^x - 1 within 2 units in the last place.
template <class Target>
[[gnu::always_inline]] inline Floats<Target> exponential_less_1(const Floats<Target>& x) {
  using V = Floats<Target>;
  const V high = x > 89.0f ? V{} + 89.0f : x;
  const Reduced<Target> parts = reduced<Target>(high < -30.0f ? V{} - 30.0f : high);
  const V q = exponential_rest<Target>(parts.r) * (parts.r * parts.r) + parts.r;
  // (1 + q) 2^n - 1 by halves, as 2^128 is too large.
  const V power = times_power<Target>(V{} + 1.0f, parts.n - 1.0f);
  const V half = power * q + (power - 0.5f);
  return x == 0.0f ? x : half + half;
}

}  // namespace renga::simd
