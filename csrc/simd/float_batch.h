// A vector of floats with the interface of xsimd's batches, compiled for the target of its caller.
#pragma once

#include "simd/exponential.h"

namespace renga::simd {

template <class Target>
struct FloatMask {
  typename VectorTypes<Target>::Integers bits;

  [[gnu::always_inline]] friend FloatMask operator&&(const FloatMask& a, const FloatMask& b) {
    return {a.bits & b.bits};
  }
};

template <class Target>
struct FloatBatch {
  using value_type = float;
  using V = Floats<Target>;
  using Mask = FloatMask<Target>;

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
  [[gnu::always_inline]] friend FloatBatch select(const Mask& mask, const FloatBatch& yes,
                                                  const FloatBatch& no) {
    return FloatBatch(mask.bits ? yes.v : no.v);
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

  V v;
};

}  // namespace renga::simd
