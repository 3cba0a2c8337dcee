// Philox 4x32-10: four 32-bit random numbers for each value of a counter.
#pragma once

#include <array>
#include <cstdint>

namespace renga {

inline std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t counter) {
  constexpr std::uint32_t kMultiply0 = 0xD2511F53, kMultiply1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  std::array<std::uint32_t, 4> c{static_cast<std::uint32_t>(counter),
                                 static_cast<std::uint32_t>(counter >> 32), 0, 0};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{kMultiply0} * c[0];
    const std::uint64_t p1 = std::uint64_t{kMultiply1} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key1, static_cast<std::uint32_t>(p0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return c;
}

}  // namespace renga
