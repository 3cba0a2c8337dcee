// The first floats of a vector, where an array ends, and rows of any length as vectors.
#pragma once

#include "simd/float_vector.h"
#include "simd/vector.h"

namespace renga::simd {

// Masks of the first `count` numbers.
template <class Target, class C = float>
[[gnu::always_inline]] inline typename Vector<Target, C>::M first_lanes(int count) {
  return Vector<Target, C>::M::of_bits((1U << count) - 1);
}

// These numbers, and zeros; no others are read.
template <class Target, class C>
[[gnu::always_inline]] inline typename Vector<Target, C>::V load_first(const C* from, int count) {
  using Numbers = Vector<Target, C>;
#if defined(__AVX__)
  constexpr bool is_single = sizeof(C) == sizeof(float);
  const auto& memory = *reinterpret_cast<const C(*)[Numbers::width]>(from);
  const auto mask = first_lanes<Target, C>(count);
  typename Numbers::V v;
  if constexpr (Target::has_mask_registers && is_single) {
    asm("vmovups %2, %0%{%1%}%{z%}" : "=v"(v) : "Yk"(mask.bits), "m"(memory));
  } else if constexpr (Target::has_mask_registers) {
    asm("vmovupd %2, %0%{%1%}%{z%}" : "=v"(v) : "Yk"(mask.bits), "m"(memory));
  } else if constexpr (is_single) {
    asm("vmaskmovps %2, %1, %0" : "=x"(v) : "x"(mask.lanes), "m"(memory));
  } else {
    asm("vmaskmovpd %2, %1, %0" : "=x"(v) : "x"(mask.lanes), "m"(memory));
  }
#else
  typename Numbers::V v = {};
  for (int i = 0; i < count; ++i) v[i] = from[i];
#endif
  return v;
}

// Writes these numbers, and no others.
template <class Target, class C>
[[gnu::always_inline]] inline void store_first(const typename Vector<Target, C>::V& v, C* to,
                                               int count) {
#if defined(__AVX__)
  constexpr bool is_single = sizeof(C) == sizeof(float);
  auto& memory = *reinterpret_cast<C(*)[Vector<Target, C>::width]>(to);
  const auto mask = first_lanes<Target, C>(count);
  if constexpr (Target::has_mask_registers && is_single) {
    asm("vmovups %2, %0%{%1%}" : "+m"(memory) : "Yk"(mask.bits), "v"(v));
  } else if constexpr (Target::has_mask_registers) {
    asm("vmovupd %2, %0%{%1%}" : "+m"(memory) : "Yk"(mask.bits), "v"(v));
  } else if constexpr (is_single) {
    asm("vmaskmovps %2, %1, %0" : "+m"(memory) : "x"(mask.lanes), "x"(v));
  } else {
    asm("vmaskmovpd %2, %1, %0" : "+m"(memory) : "x"(mask.lanes), "x"(v));
  }
#else
  for (int i = 0; i < count; ++i) to[i] = v[i];
#endif
}

// Calls body(v, i, count) with vectors that cover [0, n), of which the last
// `count` may be fewer numbers of x and `filling`.
template <class Target, class C, class Body>
[[gnu::always_inline]] inline void for_vectors(const C* x, std::int64_t n, C filling,
                                               const Body& body) {
  using V = Vector<Target, C>;
  constexpr std::int64_t width = V::width;
  std::int64_t i = 0;
  for (; i + width <= n; i += width) body(V(V::load(x + i)), i, width);
  if (i == n) return;
  const int count = static_cast<int>(n - i);
  const V rest(load_first<Target>(x + i, count));
  body(select(first_lanes<Target, C>(count), rest, V(filling)), i, count);
}

}  // namespace renga::simd
