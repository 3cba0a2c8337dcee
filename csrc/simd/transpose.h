// The transpose of a square of numbers in registers.
#pragma once

#include "simd/bfloat16.h"

namespace renga::simd {
namespace transposing {

// Shuffles of 16 floats, each one instruction without a vector of indices. Within the lanes of 128
// bits: their first or last two numbers in turn, or their first or last pairs.
template <class V>
[[gnu::always_inline]] inline V first_two(const V& a, const V& b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
}
template <class V>
[[gnu::always_inline]] inline V last_two(const V& a, const V& b) {
  return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
}
template <class V>
[[gnu::always_inline]] inline V first_pairs(const V& a, const V& b) {
  return __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
}
template <class V>
[[gnu::always_inline]] inline V last_pairs(const V& a, const V& b) {
  return __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
}
// The lanes with even or odd numbers of a and b.
template <class V>
[[gnu::always_inline]] inline V even_lanes(const V& a, const V& b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
}
template <class V>
[[gnu::always_inline]] inline V odd_lanes(const V& a, const V& b) {
  return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
}

template <class V>
[[gnu::always_inline]] inline void transpose(V (&rows)[16]) {
  V quads[16];  // 4 g + c: columns c, c + 4, c + 8 and c + 12 of the four rows from 4 g on
#pragma GCC unroll 4
  for (int g = 0; g < 16; g += 4) {
    const V ab = first_two(rows[g], rows[g + 1]), cd = first_two(rows[g + 2], rows[g + 3]);
    quads[g] = first_pairs(ab, cd);
    quads[g + 1] = last_pairs(ab, cd);
    const V last_ab = last_two(rows[g], rows[g + 1]), last_cd = last_two(rows[g + 2], rows[g + 3]);
    quads[g + 2] = first_pairs(last_ab, last_cd);
    quads[g + 3] = last_pairs(last_ab, last_cd);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const V even = even_lanes(quads[c], quads[4 + c]), odd = odd_lanes(quads[c], quads[4 + c]);
    const V last_even = even_lanes(quads[8 + c], quads[12 + c]);
    const V last_odd = odd_lanes(quads[8 + c], quads[12 + c]);
    rows[c] = even_lanes(even, last_even);
    rows[c + 4] = even_lanes(odd, last_odd);
    rows[c + 8] = odd_lanes(even, last_even);
    rows[c + 12] = odd_lanes(odd, last_odd);
  }
}

// Each stage is a perfect shuffle of all numbers.
template <class V>
[[gnu::always_inline]] inline void transpose(V (&rows)[8]) {
#pragma GCC unroll 3
  for (int stage = 0; stage < 3; ++stage) {
    V next[8];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const V &a = rows[k], &b = rows[k + 4];
      next[2 * k] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
      next[2 * k + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) rows[k] = next[k];
  }
}

}  // namespace transposing

template <class Target>
[[gnu::always_inline]] inline void transpose(Floats<Target> (&rows)[Target::width]) {
  transposing::transpose(rows);
}

}  // namespace renga::simd
