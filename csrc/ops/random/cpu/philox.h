// Numbers of Philox, drawn 64 at a time in vectors.
#pragma once

#include <array>
#include <cstdint>

#include "ops/random/philox.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace renga {

using PhiloxBlock = std::array<std::uint32_t, kPhiloxBlock>;

namespace detail {

using namespace philox_constants;

#if defined(__AVX2__)

// Computes the words of eight counters: two vectors per word, which is in the lower half of 64-bit
// lanes. The upper halves are undefined and never read.
inline void philox_eight(std::uint64_t seed, std::uint64_t first, std::uint32_t* numbers) {
  const __m256i multiply0 = _mm256_set1_epi64x(kMultiply0);
  const __m256i multiply1 = _mm256_set1_epi64x(kMultiply1);
  // The lanes are in the order that packing at the end restores.
  const auto low = static_cast<std::int64_t>(first & 0xFFFFFFFF);
  const __m256i high = _mm256_set1_epi64x(static_cast<std::int64_t>(first >> 32));
  __m256i c0[2] = {_mm256_set_epi64x(low + 5, low + 4, low + 1, low),
                   _mm256_set_epi64x(low + 7, low + 6, low + 3, low + 2)};
  __m256i c1[2] = {high, high}, c2[2] = {}, c3[2] = {};
  auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const __m256i k0 = _mm256_set1_epi64x(key0), k1 = _mm256_set1_epi64x(key1);
    for (int v = 0; v < 2; ++v) {
      const __m256i p0 = _mm256_mul_epu32(c0[v], multiply0);
      const __m256i p1 = _mm256_mul_epu32(c2[v], multiply1);
      c0[v] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1[v]), k0);
      c2[v] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3[v]), k1);
      c1[v] = p1;
      c3[v] = p0;
    }
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  for (const auto* word : {c0, c1, c2, c3}) {
    _mm256_storeu_ps(
        reinterpret_cast<float*>(numbers),
        _mm256_shuffle_ps(_mm256_castsi256_ps(word[0]), _mm256_castsi256_ps(word[1]), 0x88));
    numbers += kCounters;
  }
}

// Computes the words of two blocks of sixteen counters.
[[gnu::target("avx512f,avx512vl,avx512dq,avx512bw")]] inline void philox_two_blocks(
    std::uint64_t seed, std::uint64_t first, std::uint32_t* numbers) {
  constexpr int kVectors = 4, kExclusiveOr = 0x96;
  const __m512i multiply0 = _mm512_set1_epi64(kMultiply0);
  const __m512i multiply1 = _mm512_set1_epi64(kMultiply1);
  const __m512i order[2] = {_mm512_set_epi64(13, 12, 9, 8, 5, 4, 1, 0),
                            _mm512_set_epi64(15, 14, 11, 10, 7, 6, 3, 2)};
  __m512i c0[kVectors], c1[kVectors], c2[kVectors], c3[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    const std::uint64_t start = first + static_cast<std::uint64_t>(v / 2 * kCounters);
    c0[v] = _mm512_add_epi64(_mm512_set1_epi64(static_cast<std::int64_t>(start & 0xFFFFFFFF)),
                             order[v % 2]);
    c1[v] = _mm512_set1_epi64(static_cast<std::int64_t>(start >> 32));
    c2[v] = c3[v] = _mm512_setzero_si512();
  }
  auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const __m512i k0 = _mm512_set1_epi64(key0), k1 = _mm512_set1_epi64(key1);
    for (int v = 0; v < kVectors; ++v) {
      const __m512i p0 = _mm512_mul_epu32(c0[v], multiply0);
      const __m512i p1 = _mm512_mul_epu32(c2[v], multiply1);
      c0[v] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p1, 32), c1[v], k0, kExclusiveOr);
      c2[v] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p0, 32), c3[v], k1, kExclusiveOr);
      c1[v] = p1;
      c3[v] = p0;
    }
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  for (int v = 0; v < kVectors; v += 2) {
    for (const auto* word : {c0, c1, c2, c3}) {
      _mm512_storeu_ps(numbers, _mm512_shuffle_ps(_mm512_castsi512_ps(word[v]),
                                                  _mm512_castsi512_ps(word[v + 1]), 0x88));
      numbers += kCounters;
    }
  }
}

#else

inline void philox_one(std::uint64_t seed, std::uint64_t counter, std::uint32_t* numbers) {
  for (std::uint32_t word : philox_words(seed, counter).words) {
    *numbers = word;
    numbers += kCounters;
  }
}

#endif

}  // namespace detail

inline void philox(std::uint64_t seed, std::int64_t block, PhiloxBlock& numbers) {
  const std::uint64_t first = static_cast<std::uint64_t>(block) * detail::kCounters;
#if defined(__AVX2__)
  for (int i = 0; i < detail::kCounters; i += 8) {
    detail::philox_eight(seed, first + static_cast<std::uint64_t>(i), numbers.data() + i);
  }
#else
  for (int i = 0; i < detail::kCounters; ++i) {
    detail::philox_one(seed, first + static_cast<std::uint64_t>(i), numbers.data() + i);
  }
#endif
}

// Two adjoining blocks. The numbers do not depend on `has_avx512`.
inline void philox(std::uint64_t seed, std::int64_t block, std::array<PhiloxBlock, 2>& numbers,
                   [[maybe_unused]] bool has_avx512) {
#if defined(__AVX2__)
  if (has_avx512) {
    const std::uint64_t first = static_cast<std::uint64_t>(block) * detail::kCounters;
    return detail::philox_two_blocks(seed, first, numbers[0].data());
  }
#endif
  philox(seed, block, numbers[0]);
  philox(seed, block + 1, numbers[1]);
}

#if defined(__AVX2__)
namespace detail {

[[gnu::target("avx512f")]] inline std::uint64_t at_least_avx512(std::uint32_t threshold,
                                                                const std::uint32_t* numbers) {
  const __m512i least = _mm512_set1_epi32(static_cast<int>(threshold));
  std::uint64_t bits = 0;
  for (int j = 0; j < kPhiloxBlock; j += 16) {
    const __m512i drawn = _mm512_loadu_si512(numbers + j);
    bits |= std::uint64_t{_mm512_cmpge_epu32_mask(drawn, least)} << j;
  }
  return bits;
}

}  // namespace detail
#endif

// Bit j says whether number j is at least `threshold`.
inline std::uint64_t at_least(std::uint32_t threshold, const PhiloxBlock& numbers,
                              [[maybe_unused]] bool has_avx512) {
#if defined(__AVX2__)
  if (has_avx512) return detail::at_least_avx512(threshold, numbers.data());
#endif
  std::uint64_t bits = 0;
  for (int j = 0; j < kPhiloxBlock; ++j) {
    const std::uint64_t bit = numbers[static_cast<std::size_t>(j)] >= threshold;
    bits |= bit << j;
  }
  return bits;
}

}  // namespace renga
