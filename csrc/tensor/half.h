// The two 16-bit floating types as storage: arithmetic on them is done in float32.
#pragma once

#include <bit>
#include <cstdint>

namespace renga {

#if defined(__aarch64__)
using NativeHalf = __fp16;  // gcc knows _Float16 there from version 13 on
#else
using NativeHalf = _Float16;
#endif

// IEEE 754 binary16.
struct float16 {
  std::uint16_t bits = 0;

  float16() = default;
  explicit float16(float f) : bits(std::bit_cast<std::uint16_t>(static_cast<NativeHalf>(f))) {}
  explicit operator float() const { return static_cast<float>(std::bit_cast<NativeHalf>(bits)); }
};

// The upper half of a float32, rounded to nearest even.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float f) {
    const auto u = std::bit_cast<std::uint32_t>(f);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = nan ? static_cast<std::uint16_t>((u >> 16) | 0x40u)
               : static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

}  // namespace renga
