// Kernels written once for vectors and for single elements: vectors where they fit, elements for
// the rest of a run. The 16-bit floats are computed in float.
#pragma once

#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "tensor/dtype.h"

namespace renga {

template <class V>
inline constexpr bool is_vector = !std::is_arithmetic_v<V>;

// Calls body(Type<V>{}, i) for groups of lanes that cover [0, n): V is a vector of the type in
// which T is computed, or that type.
template <class T, class Body>
void each_lanes(std::int64_t n, const Body& body) {
  using V = xsimd::batch<Compute<T>>;
  constexpr auto width = static_cast<std::int64_t>(V::size);
  std::int64_t i = 0;
  for (; i + width <= n; i += width) body(Type<V>{}, i);
  for (; i < n; ++i) body(Type<Compute<T>>{}, i);
}

// Sixteen-bit floats to and from a vector.
template <class V, class T>
struct HalfLanes {
  static V load(const T* from) {
    float lanes[V::size];
    for (std::size_t l = 0; l < V::size; ++l) lanes[l] = static_cast<float>(from[l]);
    return V::load_unaligned(lanes);
  }
  static void store(const V& v, T* to) {
    float lanes[V::size];
    v.store_unaligned(lanes);
    for (std::size_t l = 0; l < V::size; ++l) to[l] = T(lanes[l]);
  }
};

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
// The common case, for which the compiler does not find these instructions.
using EightFloats = xsimd::batch<float, xsimd::fma3<xsimd::avx2>>;

template <>
struct HalfLanes<EightFloats, float16> {
  static EightFloats load(const float16* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static void store(const EightFloats& v, float16* to) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
};

template <>
struct HalfLanes<EightFloats, bfloat16> {
  static EightFloats load(const bfloat16* from) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  // To nearest even; a NaN stays one.
  static void store(const EightFloats& v, bfloat16* to) {
    const __m256i bits = _mm256_castps_si256(v), upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i words = _mm256_blendv_epi8(rounded, quiet, nan);
    const __m128i halves =
        _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), halves);
  }
};
#endif

template <class V, class T>
V load(const T* from) {
  if constexpr (is_vector<V> && is_half<T>) {
    return HalfLanes<V, T>::load(from);
  } else if constexpr (is_vector<V>) {
    return V::load_unaligned(from);
  } else {
    return static_cast<V>(*from);
  }
}

template <class V, class T>
void store(const V& v, T* to) {
  if constexpr (is_vector<V> && is_half<T>) {
    HalfLanes<V, T>::store(v, to);
  } else if constexpr (is_vector<V>) {
    v.store_unaligned(to);
  } else {
    *to = static_cast<T>(v);
  }
}

// The sum of term(Type<V>{}, i) over [0, n), in four vectors side by side.
template <class T, class Term>
Compute<T> sum_lanes(std::int64_t n, const Term& term) {
  using C = Compute<T>;
  using V = xsimd::batch<C>;
  constexpr auto width = static_cast<std::int64_t>(V::size);
  V sums[4] = {V(C(0)), V(C(0)), V(C(0)), V(C(0))};
  std::int64_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width) {
    for (int k = 0; k < 4; ++k) sums[k] = sums[k] + term(Type<V>{}, i + k * width);
  }
  for (; i + width <= n; i += width) sums[0] = sums[0] + term(Type<V>{}, i);
  C total = xsimd::hadd((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; i < n; ++i) total += term(Type<C>{}, i);
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

// xsimd's v != v is an ordered comparison, which is false for NaN.
template <class V>
auto is_nan(const V& v) {
  if constexpr (is_vector<V>) {
    return xsimd::isnan(v);
  } else {
    return v != v;
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

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
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
