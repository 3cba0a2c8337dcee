// Loops compiled for several instruction sets, of which the machine's best is chosen when the
// program runs, and the vectors of floats that they are written with.
#pragma once

#include <cstdint>
#include <type_traits>

#include "devices/cpu/onednn.h"
#include "tensor/half.h"

namespace renga {

// Lanes of a vector, and whether there are sums of products of bfloat16 numbers.
struct Avx2 {
  static constexpr int width = 8;
  static constexpr bool bfloat16_products = false;
};
struct Avx512 {
  static constexpr int width = 16;
  static constexpr bool bfloat16_products = false;
};
struct Avx512Bfloat16 {
  static constexpr int width = 16;
  static constexpr bool bfloat16_products = true;
};

// Compiled for one set, with everything inlined into it that is to be so.
template <class Body>
[[gnu::noinline]] void run_on_avx2(const Body& body) {
  body(Avx2{});
}
template <class Body>
[[gnu::noinline, gnu::target("avx512f,avx512vl,avx512dq,avx512bw")]] void run_on_avx512(
    const Body& body) {
  body(Avx512{});
}
template <class Body>
[[gnu::noinline, gnu::target("avx512f,avx512vl,avx512dq,avx512bw,avx512bf16")]] void
run_on_avx512_bfloat16(const Body& body) {
  body(Avx512Bfloat16{});
}

// Calls body(target) with the best set; where products are of bfloat16 numbers, with the one that
// has these. The body is a lambda that is always inlined.
template <class Number, class Body>
void on_best_target(const Body& body) {
  if constexpr (std::is_same_v<Number, bfloat16>) {
    run_on_avx512_bfloat16(body);
  } else if (onednn::has_bfloat16_products()) {
    run_on_avx512_bfloat16(body);
  } else if (onednn::has_avx512()) {
    run_on_avx512(body);
  } else {
    run_on_avx2(body);
  }
}

template <class Target>
struct VectorsOf {
  using Floats [[gnu::vector_size(4 * Target::width)]] = float;
  using Words [[gnu::vector_size(4 * Target::width)]] = std::uint32_t;
  using Halves [[gnu::vector_size(2 * Target::width)]] = std::uint16_t;
  using FloatsAnywhere [[gnu::vector_size(4 * Target::width), gnu::aligned(4), gnu::may_alias]] =
      float;
  using WordsAnywhere [[gnu::vector_size(4 * Target::width), gnu::aligned(4), gnu::may_alias]] =
      std::uint32_t;
  using HalvesAnywhere [[gnu::vector_size(2 * Target::width), gnu::aligned(2), gnu::may_alias]] =
      std::uint16_t;
};
template <class Target>
using Floats = typename VectorsOf<Target>::Floats;

template <class Target>
[[gnu::always_inline]] inline Floats<Target> load_floats(const float* from) {
  return *reinterpret_cast<const typename VectorsOf<Target>::FloatsAnywhere*>(from);
}

// Bits of bfloat16 numbers as floats. What the compiler makes of such a conversion takes three
// times as many instructions.
template <class Target>
[[gnu::always_inline]] inline Floats<Target> widened(
    const typename VectorsOf<Target>::Halves& halves) {
  typename VectorsOf<Target>::Words words;
  asm("vpmovzxwd %1, %0" : "=v"(words) : "v"(halves));
  words <<= 16;
  return reinterpret_cast<Floats<Target>>(words);
}

template <class Target>
[[gnu::always_inline]] inline Floats<Target> load_floats(const bfloat16* from) {
  // Its type in full: `auto`, or a template's argument, would take it to be aligned.
  const typename VectorsOf<Target>::HalvesAnywhere& halves =
      *reinterpret_cast<const typename VectorsOf<Target>::HalvesAnywhere*>(from);
  typename VectorsOf<Target>::Words words;
  asm("vpmovzxwd %1, %0" : "=v"(words) : "m"(halves));
  words <<= 16;
  return reinterpret_cast<Floats<Target>>(words);
}

template <class Target>
[[gnu::always_inline]] inline void store_floats(const Floats<Target>& v, float* to) {
  *reinterpret_cast<typename VectorsOf<Target>::FloatsAnywhere*>(to) = v;
}

// Rounded to nearest even.
template <class Target>
[[gnu::always_inline]] inline typename VectorsOf<Target>::Halves as_bfloat16(
    const Floats<Target>& v) {
  if constexpr (Target::bfloat16_products) {
    typename VectorsOf<Target>::Halves rounded;
    asm("vcvtneps2bf16 %1, %0" : "=v"(rounded) : "v"(v));
    return rounded;
  } else {
    using Words = typename VectorsOf<Target>::Words;
    const Words words = reinterpret_cast<Words>(v);
    const Words rounded = (words + 0x7fffu + ((words >> 16) & 1u)) >> 16;
    const Words quiet_nan = (words >> 16) | 0x40u;
    const Words result = (words & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded;
    return __builtin_convertvector(result, typename VectorsOf<Target>::Halves);
  }
}

template <class Target>
[[gnu::always_inline]] inline void store_floats(const Floats<Target>& v, bfloat16* to) {
  // Its type in full: `auto` would take it to be aligned.
  typename VectorsOf<Target>::HalvesAnywhere& halves =
      *reinterpret_cast<typename VectorsOf<Target>::HalvesAnywhere*>(to);
  halves = as_bfloat16<Target>(v);
}

// One after the other from each: v[0], w[0], v[1], w[1], ...
template <class Target>
[[gnu::always_inline]] inline void store_pairs(const Floats<Target>& v, const Floats<Target>& w,
                                               bfloat16* to) {
  static_assert(Target::bfloat16_products);
  using Halves [[gnu::vector_size(64)]] = std::uint16_t;
  using HalvesAnywhere [[gnu::vector_size(64), gnu::aligned(2), gnu::may_alias]] = std::uint16_t;
  Halves rounded;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(rounded) : "v"(v), "v"(w));
  *reinterpret_cast<HalvesAnywhere*>(to) =
      __builtin_shufflevector(rounded, rounded, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
                              23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

}  // namespace renga
