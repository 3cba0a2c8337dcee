// Kernels written once for vectors and for single elements: vectors where they fit, elements for
// the rest of a run, and for the 16-bit floats, which are computed in float.
#pragma once

#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "tensor/dtype.h"

namespace renga {

template <class V>
inline constexpr bool is_vector = !std::is_arithmetic_v<V>;

// Calls body(Type<V>{}, i) for groups of lanes that cover [0, n): V is a vector of T, or the type
// in which single elements of T are computed.
template <class T, class Body>
void each_lanes(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  if constexpr (std::is_same_v<T, Compute<T>>) {
    using V = xsimd::batch<T>;
    constexpr auto width = static_cast<std::int64_t>(V::size);
    for (; i + width <= n; i += width) body(Type<V>{}, i);
  }
  for (; i < n; ++i) body(Type<Compute<T>>{}, i);
}

template <class V, class T>
V load(const T* from) {
  if constexpr (is_vector<V>) {
    return V::load_unaligned(from);
  } else {
    return static_cast<V>(*from);
  }
}

template <class V, class T>
void store(const V& v, T* to) {
  if constexpr (is_vector<V>) {
    v.store_unaligned(to);
  } else {
    *to = static_cast<T>(v);
  }
}

// The sum of term(Type<V>{}, i) over [0, n), in four vectors side by side.
template <class T, class Term>
Compute<T> sum_lanes(std::int64_t n, const Term& term) {
  Compute<T> total = 0;
  std::int64_t i = 0;
  if constexpr (std::is_same_v<T, Compute<T>>) {
    using V = xsimd::batch<T>;
    constexpr auto width = static_cast<std::int64_t>(V::size);
    V sums[4] = {V(T(0)), V(T(0)), V(T(0)), V(T(0))};
    for (; i + 4 * width <= n; i += 4 * width) {
      for (int k = 0; k < 4; ++k) sums[k] = sums[k] + term(Type<V>{}, i + k * width);
    }
    for (; i + width <= n; i += width) sums[0] = sums[0] + term(Type<V>{}, i);
    total = xsimd::hadd((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
  for (; i < n; ++i) total += term(Type<Compute<T>>{}, i);
  return total;
}

template <class M, class V>
V choose(const M& mask, const V& yes, const V& no) {
  if constexpr (is_vector<V>) {
    return xsimd::select(mask, yes, no);
  } else {
    return mask ? yes : no;
  }
}

// Small integers kept beside floating lanes.
template <class V, class I>
V load_integers(const I* from) {
  if constexpr (is_vector<V>) {
    typename V::value_type lanes[V::size];
    for (std::size_t l = 0; l < V::size; ++l)
      lanes[l] = static_cast<typename V::value_type>(from[l]);
    return V::load_unaligned(lanes);
  } else {
    return static_cast<V>(*from);
  }
}

template <class V, class I>
void store_integers(const V& v, I* to) {
  if constexpr (is_vector<V>) {
    typename V::value_type lanes[V::size];
    v.store_unaligned(lanes);
    for (std::size_t l = 0; l < V::size; ++l) to[l] = static_cast<I>(lanes[l]);
  } else {
    *to = static_cast<I>(v);
  }
}

#if defined(__AVX2__) && defined(__FMA__)
// The common case, for which the compiler does not find these instructions.
using EightFloats = xsimd::batch<float, xsimd::fma3<xsimd::avx2>>;

template <>
inline EightFloats load_integers<EightFloats>(const std::uint8_t* from) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return EightFloats(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)));
}

template <>
inline void store_integers(const EightFloats& v, std::uint8_t* to) {
  const __m256i words = _mm256_cvttps_epi32(v);
  const __m128i halves =
      _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(halves, halves));
}
#endif

}  // namespace renga
