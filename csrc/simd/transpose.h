// The transpose of a square of numbers in registers.
#pragma once

#include "simd/bfloat16.h"

namespace renga::simd {

// a0 b0 a1 b1 … in two vectors.
template <class Target>
[[gnu::always_inline]] inline void interleave(const Floats<Target>& a, const Floats<Target>& b,
                                              Floats<Target>& low, Floats<Target>& high) {
  if constexpr (Target::width == 16) {
    low = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    high =
        __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  } else {
    low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  }
}

// Each stage is a perfect shuffle of all numbers.
template <class Target>
[[gnu::always_inline]] inline void transpose(Floats<Target> (&rows)[Target::width]) {
  constexpr int half = Target::width / 2;
#pragma GCC unroll 4
  for (int stage = 1; stage < Target::width; stage *= 2) {
    Floats<Target> next[Target::width];
#pragma GCC unroll 8
    for (int k = 0; k < half; ++k) {
      interleave<Target>(rows[k], rows[k + half], next[2 * k], next[2 * k + 1]);
    }
#pragma GCC unroll 16
    for (int k = 0; k < Target::width; ++k) rows[k] = next[k];
  }
}

}  // namespace renga::simd
