// The sums of the numbers of four vectors at once.
#pragma once

#include "simd/float_vector.h"
#include "simd/transpose.h"

namespace renga::simd {

inline constexpr int kSums = 4;
using Sums [[gnu::vector_size(kSums * sizeof(float))]] = float;

// The sums of four vectors: each step adds halves of all 128-bit lanes, the last ones the lanes.
template <class Target>
[[gnu::always_inline]] inline Sums sum_each(const Floats<Target> (&v)[kSums]) {
  using namespace shuffles;
  using V = Floats<Target>;
  const V ab = first_two(v[0], v[1]) + last_two(v[0], v[1]);
  const V cd = first_two(v[2], v[3]) + last_two(v[2], v[3]);
  const V lanes = first_pairs(ab, cd) + last_pairs(ab, cd);
  const auto sum_halves = [](const auto& half) __attribute__((always_inline)) {
    return __builtin_shufflevector(half, half, 0, 1, 2, 3) +
           __builtin_shufflevector(half, half, 4, 5, 6, 7);
  };
  if constexpr (Target::width == 16) {
    return sum_halves(__builtin_shufflevector(lanes, lanes, 0, 1, 2, 3, 4, 5, 6, 7) +
                      __builtin_shufflevector(lanes, lanes, 8, 9, 10, 11, 12, 13, 14, 15));
  } else {
    return sum_halves(lanes);
  }
}

}  // namespace renga::simd
