// Elementary functions of vectors, found by their argument. Those of floats that are made of
// exponentials are renga's own, for all targets; the others are xsimd's, of vectors as wide as the
// instructions that all of the library is compiled for.
#pragma once

#include <numbers>
#include <xsimd/xsimd.hpp>

#include "simd/exponential.h"
#include "simd/powers.h"
#include "simd/vector.h"

namespace renga::simd {

// f of the numbers of x, in xsimd's vectors.
template <class Target, class C, class F>
[[gnu::always_inline]] inline Vector<Target, C> by_xsimd(const Vector<Target, C>& x, const F& f) {
  using Batch = xsimd::batch<C>;
  constexpr std::size_t width = Vector<Target, C>::width;
  alignas(sizeof(x.v)) C numbers[width];
  Vector<Target, C>::store(x.v, numbers);
  for (std::size_t i = 0; i < width; i += Batch::size) {
    Batch(f(Batch::load_aligned(numbers + i))).store_aligned(numbers + i);
  }
  return Vector<Target, C>(Vector<Target, C>::load(numbers));
}

#define RENGA_BY_XSIMD(name)                                                         \
  template <class Target, class C>                                                   \
  [[gnu::always_inline]] inline Vector<Target, C> name(const Vector<Target, C>& x) { \
    return by_xsimd(x, [](const auto& batch) { return xsimd::name(batch); });        \
  }
RENGA_BY_XSIMD(floor)
RENGA_BY_XSIMD(ceil)
RENGA_BY_XSIMD(trunc)
RENGA_BY_XSIMD(sqrt)
RENGA_BY_XSIMD(expm1)
RENGA_BY_XSIMD(log1p)
RENGA_BY_XSIMD(sin)
RENGA_BY_XSIMD(cos)
RENGA_BY_XSIMD(tan)
RENGA_BY_XSIMD(asin)
RENGA_BY_XSIMD(acos)
RENGA_BY_XSIMD(atan)
RENGA_BY_XSIMD(sinh)
RENGA_BY_XSIMD(cosh)
RENGA_BY_XSIMD(erf)
#undef RENGA_BY_XSIMD

// xsimd takes the exponent of a subnormal double for that of the least normal one. Subnormal
// numbers are multiplied by 2^54 first, whose logarithm is `shift`.
template <class Target, class C, class F>
[[gnu::always_inline]] inline Vector<Target, C> logarithm(const Vector<Target, C>& x, double shift,
                                                          const F& log) {
  using V = Vector<Target, C>;
  if constexpr (std::is_same_v<C, double>) {
    const auto subnormal = x < V(std::numeric_limits<C>::min());
    const V y = by_xsimd(select(subnormal, x * V(0x1p54), x), log);
    return select(subnormal, y - V(shift), y);
  } else {
    return by_xsimd(x, log);
  }
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> log(const Vector<Target, C>& x) {
  return logarithm(x, 54 * std::numbers::ln2, [](const auto& batch) { return xsimd::log(batch); });
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> log2(const Vector<Target, C>& x) {
  return logarithm(x, 54, [](const auto& batch) { return xsimd::log2(batch); });
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> log10(const Vector<Target, C>& x) {
  return logarithm(x, 54 * std::numbers::ln2 / std::numbers::ln10,
                   [](const auto& batch) { return xsimd::log10(batch); });
}

template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> exp(const Vector<Target, C>& x) {
  if constexpr (std::is_same_v<C, float>) {
    return Vector<Target, C>(exponential_of_any<Target>(x.v));
  } else {
    return by_xsimd(x, [](const auto& batch) { return xsimd::exp(batch); });
  }
}
// log(1 + e^x).
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> log1p_exp(const Vector<Target, C>& x) {
  return by_xsimd(x, [](const auto& batch) { return xsimd::log1p(xsimd::exp(batch)); });
}

// Of floats within 2 units in the last place: near 0 by a minimax polynomial in x², elsewhere by
// e^2|x|.
template <class Target>
[[gnu::always_inline]] inline Floats<Target> tanh_of_floats(const Floats<Target>& x,
                                                            const Floats<Target>& size) {
  using V = Floats<Target>;
  const V z = x * x;
  V p = z * -5.704984e-3f + 2.0639084e-2f;
  p = p * z - 5.3739715e-2f;
  p = p * z + 1.3331442e-1f;
  p = p * z - 3.333328e-1f;
  const V near = x * (z * p + 1.0f);
  // Beyond 10, it is 1.
  const V power = exponential<Target>(2.0f * (size < 10.0f ? size : V{} + 10.0f));
  const V far = 1.0f - 2.0f / (power + 1.0f);
  // No comparison holds for NaN.
  return size >= 0.625f ? (x < 0.0f ? -far : far) : near;
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> tanh(const Vector<Target, C>& x) {
  if constexpr (std::is_same_v<C, float>) {
    return Vector<Target, C>(tanh_of_floats<Target>(x.v, abs(x).v));
  } else {
    return by_xsimd(x, [](const auto& batch) { return xsimd::tanh(batch); });
  }
}

}  // namespace renga::simd
