// The two 16-bit floating types as storage: arithmetic on them is done in float32.
#pragma once

#include <bit>
#include <cstdint>

#include "devices/host_device.h"

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
#ifdef __CUDA_ARCH__
  __device__ explicit float16(float f) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(f)); }
  __device__ explicit operator float() const {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits));
    return f;
  }
#else
  RENGA_HOST_DEVICE explicit float16(float f)
      : bits(std::bit_cast<std::uint16_t>(static_cast<NativeHalf>(f))) {}
  RENGA_HOST_DEVICE explicit operator float() const {
    return static_cast<float>(std::bit_cast<NativeHalf>(bits));
  }
#endif
};

// The upper half of a float32, rounded to nearest even.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  RENGA_HOST_DEVICE explicit bfloat16(float f) {
    const auto u = std::bit_cast<std::uint32_t>(f);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = nan ? static_cast<std::uint16_t>((u >> 16) | 0x40u)
               : static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  RENGA_HOST_DEVICE explicit operator float() const {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
  }
};

}  // namespace renga
