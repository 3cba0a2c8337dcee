// Magnitudes of floats as integers of the same order, in which NaN is the largest.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace renga::cpu {

inline std::uint32_t magnitude(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFF; }

inline std::uint32_t largest_magnitude(const float* x, std::int64_t n) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, magnitude(x[i]));
  return largest;
}

}  // namespace renga::cpu
