// Kernels written once for xsimd's batches and for single elements: batches where they fit,
// elements for the rest of a run. The 16-bit floats are computed in float.
#pragma once

#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "simd/bfloat16.h"
#include "tensor/dtype.h"

namespace renga::simd {

template <class V>
inline constexpr bool is_batch = !std::is_arithmetic_v<V>;

// Calls body(Type<V>{}, i) for the elements from i on, until [0, n) is covered. V is a batch of
// Compute<T>, or Compute<T>.
template <class T, class Body>
void for_each_batch(std::int64_t n, const Body& body) {
  using V = xsimd::batch<Compute<T>>;
  constexpr auto width = static_cast<std::int64_t>(V::size);
  std::int64_t i = 0;
  for (; i + width <= n; i += width) body(Type<V>{}, i);
  for (; i < n; ++i) body(Type<Compute<T>>{}, i);
}

// 16-bit floats to and from a batch of floats.
template <class V, class T>
struct HalfConversion {
  static V load(const T* from) {
    float elements[V::size];
    for (std::size_t l = 0; l < V::size; ++l) elements[l] = static_cast<float>(from[l]);
    return V::load_unaligned(elements);
  }
  static void store(const V& v, T* to) {
    float elements[V::size];
    v.store_unaligned(elements);
    for (std::size_t l = 0; l < V::size; ++l) to[l] = T(elements[l]);
  }
};

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
// The compiler does not find these instructions by itself.
using Avx2Batch = xsimd::batch<float, xsimd::fma3<xsimd::avx2>>;

template <>
struct HalfConversion<Avx2Batch, float16> {
  static Avx2Batch load(const float16* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static void store(const Avx2Batch& v, float16* to) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
};

template <>
struct HalfConversion<Avx2Batch, bfloat16> {
  static Avx2Batch load(const bfloat16* from) {
    return Avx2Batch(static_cast<__m256>(from_bfloat16<Avx2>(from)));
  }
  static void store(const Avx2Batch& v, bfloat16* to) {
    to_bfloat16<Avx2>(static_cast<Floats<Avx2>>(static_cast<__m256>(v)), to);
  }
};
#endif

template <class V, class T>
V load(const T* from) {
  if constexpr (is_batch<V> && is_half<T>) {
    return HalfConversion<V, T>::load(from);
  } else if constexpr (is_batch<V>) {
    return V::load_unaligned(from);
  } else {
    return static_cast<V>(*from);
  }
}

template <class V, class T>
void store(const V& v, T* to) {
  if constexpr (is_batch<V> && is_half<T>) {
    HalfConversion<V, T>::store(v, to);
  } else if constexpr (is_batch<V>) {
    v.store_unaligned(to);
  } else {
    *to = static_cast<T>(v);
  }
}

template <class M, class V>
V blend(const M& mask, const V& yes, const V& no) {
  if constexpr (is_batch<V>) {
    return xsimd::select(mask, yes, no);
  } else {
    return mask ? yes : no;
  }
}

// xsimd's v != v is an ordered comparison, which is false for NaN.
template <class V>
auto is_nan(const V& v) {
  if constexpr (is_batch<V>) {
    return xsimd::isnan(v);
  } else {
    return v != v;
  }
}

// Small integers as a batch of floats.
template <class V, class I>
V load_integers(const I* from) {
  if constexpr (is_batch<V>) {
    typename V::value_type elements[V::size];
    for (std::size_t l = 0; l < V::size; ++l)
      elements[l] = static_cast<typename V::value_type>(from[l]);
    return V::load_unaligned(elements);
  } else {
    return static_cast<V>(*from);
  }
}

template <class V, class I>
void store_integers(const V& v, I* to) {
  if constexpr (is_batch<V>) {
    typename V::value_type elements[V::size];
    v.store_unaligned(elements);
    for (std::size_t l = 0; l < V::size; ++l) to[l] = static_cast<I>(elements[l]);
  } else {
    *to = static_cast<I>(v);
  }
}

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
template <>
inline Avx2Batch load_integers<Avx2Batch>(const std::uint8_t* from) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return Avx2Batch(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)));
}

template <>
inline void store_integers(const Avx2Batch& v, std::uint8_t* to) {
  const __m256i words = _mm256_cvttps_epi32(v);
  const __m128i halves =
      _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(halves, halves));
}
#endif

}  // namespace renga::simd
