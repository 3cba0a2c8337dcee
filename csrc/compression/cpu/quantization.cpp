// Kernels that send all elements of a vector in a few bits.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "compression/compression.h"
#include "compression/cpu/magnitude.h"
#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "devices/rounding.h"
#include "ops/random/cpu/philox.h"

namespace renga::cpu {
namespace {

constexpr std::int64_t kCost = 8;  // elementary operations per element

// Calls body(block, begin, length) for each block of n elements, on all threads.
template <class Body>
void for_each_block(std::int64_t n, std::int64_t size, const Body& body) {
  parallel_for(divide_up(n, size), kCost * size, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b) body(b, b * size, std::min(size, n - b * size));
  });
}

// The scale of a block: zero if elements over it overflow, NaN if they are not finite.
template <int Levels>
float scale_of(const float* x, std::int64_t n) {
  const auto largest = std::bit_cast<float>(largest_magnitude(x, n));
  if (!std::isfinite(largest)) return std::numeric_limits<float>::quiet_NaN();
  return std::isfinite(Levels / largest) ? largest : 0;
}

// The codes of up to 512 elements before they are packed: the multiple, and the sign above it.
template <int Bits>
void codes_of(const float* x, std::int64_t n, float scale, std::uint64_t seed, std::int64_t begin,
              std::uint8_t* codes) {
  constexpr int kLevels = (1 << (Bits - 1)) - 1;
  const float factor = kLevels / scale;
  PhiloxBlock numbers;
  for (std::int64_t start = 0; start < n; start += kPhiloxBlock) {
    philox(seed, (begin + start) / kPhiloxBlock, numbers);
    const std::int64_t length = std::min(kPhiloxBlock, n - start);
    for (std::int64_t i = 0; i < length; ++i) {
      const auto word = numbers[static_cast<std::size_t>(i)];
      const float uniform = static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24F;
      const float level = std::fabs(x[start + i]) * factor + uniform;
      const int sign = std::bit_cast<std::int32_t>(x[start + i]) < 0 ? 1 << (Bits - 1) : 0;
      codes[start + i] =
          static_cast<std::uint8_t>(std::min(static_cast<int>(level), kLevels) | sign);
    }
  }
}

template <int Bits>
void quantize_as(const Array& x, std::uint64_t seed, const Array& codes, const Array& scales) {
  constexpr int kPerByte = 8 / Bits;
  const float* from = x.as<float>();
  auto* to = codes.as<std::uint8_t>();
  float* scale = scales.as<float>();
  for_each_block(x.size(), kQuantizationBlock,
                 [=](std::int64_t b, std::int64_t begin, std::int64_t n) {
                   scale[b] = scale_of<(1 << (Bits - 1)) - 1>(from + begin, n);
                   std::array<std::uint8_t, kQuantizationBlock> unpacked{};
                   if (scale[b] > 0) {
                     codes_of<Bits>(from + begin, n, scale[b], seed, begin, unpacked.data());
                   }
                   const std::int64_t bytes = divide_up(n, kPerByte);
                   for (std::int64_t i = 0; i < bytes; ++i) {
                     int packed = 0;
                     for (int j = 0; j < kPerByte; ++j) {
                       packed |= unpacked[static_cast<std::size_t>(i * kPerByte + j)] << (j * Bits);
                     }
                     to[begin / kPerByte + i] = static_cast<std::uint8_t>(packed);
                   }
                 });
}

template <int Bits>
void add_dequantized_as(const Array& y, const Array& codes, const Array& scales) {
  constexpr int kPerByte = 8 / Bits, kLevels = (1 << (Bits - 1)) - 1;
  float* to = y.as<float>();
  const auto* code = codes.as<std::uint8_t>();
  const float* scale = scales.as<float>();
  for_each_block(
      y.size(), kQuantizationBlock, [=](std::int64_t b, std::int64_t begin, std::int64_t n) {
        std::array<std::uint8_t, kQuantizationBlock> unpacked;
        const std::uint8_t* const from = code + begin / kPerByte;
        for (std::int64_t i = 0; i < divide_up(n, kPerByte); ++i) {
          for (int j = 0; j < kPerByte; ++j) {
            unpacked[static_cast<std::size_t>(i * kPerByte + j)] =
                static_cast<std::uint8_t>(from[i] >> (j * Bits));
          }
        }
        const float unit = scale[b] / kLevels;
        for (std::int64_t i = 0; i < n; ++i) {
          const std::uint32_t packed = unpacked[static_cast<std::size_t>(i)];
          const float value = static_cast<float>(static_cast<int>(packed & kLevels)) * unit;
          const std::uint32_t sign = (packed >> (Bits - 1)) << 31;
          to[begin + i] += std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ sign);
        }
      });
}

// Calls run(number of bits as a constant).
template <class Run>
void dispatch_bits(int bits, const Run& run) {
  if (bits == 2) return run(std::integral_constant<int, 2>());
  if (bits == 4) return run(std::integral_constant<int, 4>());
  run(std::integral_constant<int, 8>());
}

// Bit i says whether x[i] is not negative.
std::uint8_t signs_of_eight(const float* x) {
#if defined(__AVX2__)
  const __m256 negative = _mm256_cmp_ps(_mm256_loadu_ps(x), _mm256_setzero_ps(), _CMP_LT_OQ);
  return static_cast<std::uint8_t>(~_mm256_movemask_ps(negative));
#else
  int bits = 0;
  for (int i = 0; i < 8; ++i) bits |= static_cast<int>(!(x[i] < 0)) << i;
  return static_cast<std::uint8_t>(bits);
#endif
}

// Packs whether elements are not negative; returns how many are.
std::int64_t pack_signs(const float* x, std::int64_t n, std::uint8_t* signs) {
  std::int64_t count = 0;
  for (std::int64_t start = 0; start < n; start += 8) {
    float padded[8] = {};
    const std::int64_t length = std::min<std::int64_t>(8, n - start);
    std::copy_n(x + start, length, padded);
    signs[start / 8] = signs_of_eight(length < 8 ? padded : x + start);
    count += std::popcount(static_cast<unsigned>(signs[start / 8])) - (8 - length);
  }
  return count;
}

// The sums of the negative and of the other elements; NaN if one of them is.
std::array<double, 2> sums_of_signs(const float* x, std::int64_t n) {
  constexpr std::int64_t kLanes = 32;
  float low[kLanes] = {}, high[kLanes] = {};
  const std::int64_t rest = n % kLanes;
  for (std::int64_t start = 0; start < n - rest; start += kLanes) {
    for (std::int64_t i = 0; i < kLanes; ++i) {
      low[i] += std::min(x[start + i], 0.0F);
      high[i] += std::max(x[start + i], 0.0F);
    }
  }
  for (std::int64_t i = 0; i < rest; ++i) {
    low[i] += std::min(x[n - rest + i], 0.0F);
    high[i] += std::max(x[n - rest + i], 0.0F);
  }
  std::array<double, 2> sums{};
  for (std::int64_t i = 0; i < kLanes; ++i) {
    sums[0] += static_cast<double>(low[i]);
    sums[1] += static_cast<double>(high[i]);
  }
  return sums;
}

// y += factor · the means that the signs stand for.
void add_means(float* y, std::int64_t n, const std::uint8_t* signs, const float* means,
               float factor) {
  const float low = factor * means[0], high = factor * means[1];
  for (std::int64_t start = 0; start < n; start += 8) {
    const std::int64_t length = std::min<std::int64_t>(8, n - start);
    const int bits = signs[start / 8];
    for (std::int64_t i = 0; i < length; ++i) y[start + i] += (bits >> i & 1) != 0 ? high : low;
  }
}

void quantize(const Array& x, int bits, std::uint64_t seed, const Array& codes,
              const Array& scales) {
  const GilRelease work(x.size());
  dispatch_bits(bits, [&](auto b) { quantize_as<b>(x, seed, codes, scales); });
}

void add_dequantized(const Array& y, int bits, const Array& codes, const Array& scales) {
  const GilRelease work(y.size());
  dispatch_bits(bits, [&](auto b) { add_dequantized_as<b>(y, codes, scales); });
}

void take_signs(const Array& x, const Array& signs, const Array& means) {
  const GilRelease work(x.size());
  auto* from = x.as<float>();
  auto* bits = signs.as<std::uint8_t>();
  auto* mean = means.as<float>();
  for_each_block(x.size(), kSignBlock, [=](std::int64_t b, std::int64_t begin, std::int64_t n) {
    const std::int64_t count = pack_signs(from + begin, n, bits + begin / 8);
    const auto [low, high] = sums_of_signs(from + begin, n);
    mean[2 * b] = count == n ? 0 : static_cast<float>(low / static_cast<double>(n - count));
    mean[2 * b + 1] = count == 0 ? 0 : static_cast<float>(high / static_cast<double>(count));
    add_means(from + begin, n, bits + begin / 8, mean + 2 * b, -1);
  });
}

void add_signs(const Array& y, const Array& signs, const Array& means) {
  const GilRelease work(y.size());
  auto* to = y.as<float>();
  const auto* bits = signs.as<std::uint8_t>();
  const auto* mean = means.as<float>();
  for_each_block(y.size(), kSignBlock, [=](std::int64_t b, std::int64_t begin, std::int64_t n) {
    add_means(to + begin, n, bits + begin / 8, mean + 2 * b, 1);
  });
}

[[maybe_unused]] const bool registered =
    quantization_kernels.add(0, {quantize, add_dequantized, take_signs, add_signs});

}  // namespace
}  // namespace renga::cpu
