// The transpose of a square of numbers in registers.
#pragma once

#include <utility>

#include "simd/bfloat16.h"

namespace renga::simd {
namespace shuffles {

// Shuffles of floats, each one instruction without a vector of indices. Each lane of 128 bits of
// the result has these of its numbers: 0 to 3 are those of a, 4 to 7 those of b.
template <int... numbers, class V>
[[gnu::always_inline]] inline V in_lanes(const V& a, const V& b) {
  constexpr int width = sizeof(V) / sizeof(float), chosen[] = {numbers...};
  return [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b,
                                   (i / 4 * 4 + chosen[i % 4] % 4 + chosen[i % 4] / 4 * width)...);
  }
  (std::make_integer_sequence<int, width>());
}
// The first or last two numbers of a lane in turn, or its first or last pairs.
template <class V>
[[gnu::always_inline]] inline V first_two(const V& a, const V& b) {
  return in_lanes<0, 4, 1, 5>(a, b);
}
template <class V>
[[gnu::always_inline]] inline V last_two(const V& a, const V& b) {
  return in_lanes<2, 6, 3, 7>(a, b);
}
template <class V>
[[gnu::always_inline]] inline V first_pairs(const V& a, const V& b) {
  return in_lanes<0, 1, 4, 5>(a, b);
}
template <class V>
[[gnu::always_inline]] inline V last_pairs(const V& a, const V& b) {
  return in_lanes<2, 3, 6, 7>(a, b);
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

template <class V>
[[gnu::always_inline]] inline void transpose(V (&rows)[4]) {
  const V even = __builtin_shufflevector(rows[0], rows[1], 0, 4, 2, 6);
  const V odd = __builtin_shufflevector(rows[0], rows[1], 1, 5, 3, 7);
  const V last_even = __builtin_shufflevector(rows[2], rows[3], 0, 4, 2, 6);
  const V last_odd = __builtin_shufflevector(rows[2], rows[3], 1, 5, 3, 7);
  rows[0] = __builtin_shufflevector(even, last_even, 0, 1, 4, 5);
  rows[1] = __builtin_shufflevector(odd, last_odd, 0, 1, 4, 5);
  rows[2] = __builtin_shufflevector(even, last_even, 2, 3, 6, 7);
  rows[3] = __builtin_shufflevector(odd, last_odd, 2, 3, 6, 7);
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

}  // namespace shuffles

template <class Target>
[[gnu::always_inline]] inline void transpose(Floats<Target> (&rows)[Target::width]) {
  shuffles::transpose(rows);
}

}  // namespace renga::simd
