// A vector of floats with the interface of xsimd's batches, compiled for the target of its caller.
#pragma once

#include "simd/exponential.h"

namespace renga::simd {

template <class Target>
struct FloatMask {
  typename VectorTypes<Target>::Integers bits;

  // Of two comparisons, the compiler would make one with a branch for each lane.
  [[gnu::always_inline]] friend FloatMask operator&&(FloatMask a, const FloatMask& b) {
#if defined(__x86_64__)
    asm("" : "+v"(a.bits));
#endif
    return {a.bits & b.bits};
  }
};

template <class Target>
struct FloatBatch {
  using value_type = float;
  using V = Floats<Target>;
  using Mask = FloatMask<Target>;

  FloatBatch() = default;
  [[gnu::always_inline]] explicit FloatBatch(float x) : v(V{} + x) {}
  [[gnu::always_inline]] explicit FloatBatch(const V& x) : v(x) {}

  [[gnu::always_inline]] FloatBatch operator-() const { return FloatBatch(-v); }
  [[gnu::always_inline]] friend FloatBatch operator+(const FloatBatch& a, const FloatBatch& b) {
    return FloatBatch(a.v + b.v);
  }
  [[gnu::always_inline]] friend FloatBatch operator-(const FloatBatch& a, const FloatBatch& b) {
    return FloatBatch(a.v - b.v);
  }
  [[gnu::always_inline]] friend FloatBatch operator*(const FloatBatch& a, const FloatBatch& b) {
    return FloatBatch(a.v * b.v);
  }
  [[gnu::always_inline]] friend FloatBatch operator/(const FloatBatch& a, const FloatBatch& b) {
    return FloatBatch(a.v / b.v);
  }
  [[gnu::always_inline]] friend Mask operator<(const FloatBatch& a, const FloatBatch& b) {
    return {a.v < b.v};
  }
  [[gnu::always_inline]] friend Mask operator>(const FloatBatch& a, const FloatBatch& b) {
    return {a.v > b.v};
  }
  [[gnu::always_inline]] friend Mask operator<=(const FloatBatch& a, const FloatBatch& b) {
    return {a.v <= b.v};
  }
  [[gnu::always_inline]] friend Mask operator>=(const FloatBatch& a, const FloatBatch& b) {
    return {a.v >= b.v};
  }
  [[gnu::always_inline]] friend Mask isnan(const FloatBatch& a) { return {a.v != a.v}; }
  // By bits: of a choice by a mask that is a value, GCC 12 makes a branch for each lane.
  [[gnu::always_inline]] friend FloatBatch select(const Mask& mask, const FloatBatch& yes,
                                                  const FloatBatch& no) {
    using Words = typename VectorTypes<Target>::Words;
    const Words bits = reinterpret_cast<Words>(mask.bits);
    return FloatBatch(reinterpret_cast<V>((bits & reinterpret_cast<Words>(yes.v)) |
                                          (~bits & reinterpret_cast<Words>(no.v))));
  }
  // The second operand if either is NaN.
  [[gnu::always_inline]] friend FloatBatch max(const FloatBatch& a, const FloatBatch& b) {
    return FloatBatch(a.v > b.v ? a.v : b.v);
  }
  [[gnu::always_inline]] friend FloatBatch min(const FloatBatch& a, const FloatBatch& b) {
    return FloatBatch(a.v < b.v ? a.v : b.v);
  }
  [[gnu::always_inline]] friend FloatBatch abs(const FloatBatch& a) {
    using Words = typename VectorTypes<Target>::Words;
    return FloatBatch(reinterpret_cast<V>(reinterpret_cast<Words>(a.v) & 0x7fffffffu));
  }
  [[gnu::always_inline]] friend FloatBatch exp(const FloatBatch& a) {
    return FloatBatch(exponential_of_any<Target>(a.v));
  }
  // Within 2 units in the last place: near 0 by a minimax polynomial in a², elsewhere by e^2|a|.
  [[gnu::always_inline]] friend FloatBatch tanh(const FloatBatch& a) {
    const V z = a.v * a.v, size = abs(a).v;
    V p = z * -5.704984e-3f + 2.0639084e-2f;
    p = p * z - 5.3739715e-2f;
    p = p * z + 1.3331442e-1f;
    p = p * z - 3.333328e-1f;
    const V near = a.v * (z * p + 1.0f);
    // Beyond 10, it is 1.
    const V power = exponential<Target>(2.0f * (size < 10.0f ? size : V{} + 10.0f));
    const V far = 1.0f - 2.0f / (power + 1.0f);
    // No comparison holds for NaN.
    return FloatBatch(size >= 0.625f ? (a.v < 0.0f ? -far : far) : near);
  }

  V v;
};

}  // namespace renga::simd
