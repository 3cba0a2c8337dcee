// Philox 4x32-10: four 32-bit random numbers for each value of a counter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "devices/host_device.h"

namespace renga {

// Numbers come in blocks of 64: number j of block b is word j / 16 of counter 16 b + j % 16.
inline constexpr std::int64_t kPhiloxBlock = 64;

namespace philox_constants {
inline constexpr std::uint32_t kMultiply0 = 0xD2511F53, kMultiply1 = 0xCD9E8D57;
inline constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
inline constexpr int kRounds = 10, kCounters = 16;
}  // namespace philox_constants

struct PhiloxWords {
  std::uint32_t words[4];
};

RENGA_HOST_DEVICE inline PhiloxWords philox_words(std::uint64_t seed, std::uint64_t counter) {
  using namespace philox_constants;
  auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  std::uint32_t c0 = static_cast<std::uint32_t>(counter);
  std::uint32_t c1 = static_cast<std::uint32_t>(counter >> 32), c2 = 0, c3 = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{kMultiply0} * c0, p1 = std::uint64_t{kMultiply1} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ key0;
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ key1;
    c1 = static_cast<std::uint32_t>(p1);
    c3 = static_cast<std::uint32_t>(p0);
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return {{c0, c1, c2, c3}};
}

// Numbers from it on are kept by a dropout.
inline std::uint32_t dropout_threshold(double ratio) {
  return static_cast<std::uint32_t>(std::min(std::round(ratio * 0x1p32), 0x1p32 - 1));
}

// Between 0 and 1, both excluded, also if rounded to float32.
RENGA_HOST_DEVICE inline double uniform_number(std::uint32_t word) {
  return ((word >> 9) + 0.5) * 0x1p-23;
}

// Box-Muller transform: two uniform numbers, 32 positions apart, make two normal ones.
struct NormalPair {
  double first, second;
};

RENGA_HOST_DEVICE inline NormalPair normal_pair(std::uint32_t a, std::uint32_t b) {
  const double radius = std::sqrt(-2 * std::log((a + 0.5) * 0x1p-32));
  const double angle = 2 * std::numbers::pi * (b * 0x1p-32);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace renga
