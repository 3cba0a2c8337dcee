// Vectors of floats to and from bfloat16. Everything is inlined, to be compiled for the target of
// its caller.
#pragma once

#include <cstdint>

#include "simd/dispatch.h"

namespace renga::simd {

// A target's vectors, and those of them that may lie anywhere in memory.
template <class Target>
struct VectorTypes {
  using Floats [[gnu::vector_size(4 * Target::width)]] = float;
  using Words [[gnu::vector_size(4 * Target::width)]] = std::uint32_t;
  using Integers [[gnu::vector_size(4 * Target::width)]] = std::int32_t;
  using Halves [[gnu::vector_size(2 * Target::width)]] = std::uint16_t;
  using UnalignedFloats [[gnu::vector_size(4 * Target::width), gnu::aligned(4), gnu::may_alias]] =
      float;
  using UnalignedHalves [[gnu::vector_size(2 * Target::width), gnu::aligned(2), gnu::may_alias]] =
      std::uint16_t;
};
template <class Target>
using Floats = typename VectorTypes<Target>::Floats;

// What the compiler makes of this conversion for AVX takes three times as many instructions.
template <class Target>
[[gnu::always_inline]] inline Floats<Target> from_bfloat16(
    const typename VectorTypes<Target>::Halves& halves) {
  typename VectorTypes<Target>::Words words;
#if defined(__x86_64__)
  asm("vpmovzxwd %1, %0" : "=v"(words) : "v"(halves));
#else
  words = __builtin_convertvector(halves, typename VectorTypes<Target>::Words);
#endif
  words <<= 16;
  return reinterpret_cast<Floats<Target>>(words);
}

template <class Target>
[[gnu::always_inline]] inline Floats<Target> from_bfloat16(const bfloat16* from) {
  // Its type in full: `auto`, or a template's argument, would take it to be aligned.
  const typename VectorTypes<Target>::UnalignedHalves& halves =
      *reinterpret_cast<const typename VectorTypes<Target>::UnalignedHalves*>(from);
  typename VectorTypes<Target>::Words words;
#if defined(__x86_64__)
  asm("vpmovzxwd %1, %0" : "=v"(words) : "m"(halves));
#else
  words = __builtin_convertvector(halves, typename VectorTypes<Target>::Words);
#endif
  words <<= 16;
  return reinterpret_cast<Floats<Target>>(words);
}

// Rounded to nearest even; a NaN stays one.
template <class Target>
[[gnu::always_inline]] inline typename VectorTypes<Target>::Halves to_bfloat16(
    const Floats<Target>& v) {
  using Halves = typename VectorTypes<Target>::Halves;
  if constexpr (Target::has_bfloat16_dot_product) {
    Halves rounded;
    asm("vcvtneps2bf16 %1, %0" : "=v"(rounded) : "v"(v));
    return rounded;
  } else {
    using Words = typename VectorTypes<Target>::Words;
    const Words words = reinterpret_cast<Words>(v), upper = words >> 16;
    const Words rounded = (words + 0x7fffu + (upper & 1u)) >> 16;
    const Words result = v != v ? (upper | 0x40u) : rounded;
    return __builtin_convertvector(result, Halves);
  }
}

template <class Target>
[[gnu::always_inline]] inline void to_bfloat16(const Floats<Target>& v, bfloat16* to) {
  // Its type in full: `auto` would take it to be aligned.
  typename VectorTypes<Target>::UnalignedHalves& halves =
      *reinterpret_cast<typename VectorTypes<Target>::UnalignedHalves*>(to);
  halves = to_bfloat16<Target>(v);
}

// Twice as many bfloat16 numbers as a vector has floats.
using WideHalves [[gnu::vector_size(64)]] = std::uint16_t;
using UnalignedWideHalves [[gnu::vector_size(64), gnu::aligned(2), gnu::may_alias]] = std::uint16_t;

// v's numbers, then w's.
template <class Target>
[[gnu::always_inline]] inline WideHalves to_bfloat16(const Floats<Target>& v,
                                                     const Floats<Target>& w) {
  static_assert(Target::has_bfloat16_dot_product);
  WideHalves rounded;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(rounded) : "v"(v), "v"(w));
  return rounded;
}

// Writes both vectors interleaved: v[0], w[0], v[1], w[1], ...
template <class Target>
[[gnu::always_inline]] inline void to_bfloat16_interleaved(const Floats<Target>& v,
                                                           const Floats<Target>& w, bfloat16* to) {
  const WideHalves rounded = to_bfloat16<Target>(v, w);
  *reinterpret_cast<UnalignedWideHalves*>(to) =
      __builtin_shufflevector(rounded, rounded, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
                              23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

}  // namespace renga::simd
