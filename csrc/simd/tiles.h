// Tiles: squares of numbers of which one instruction (AMX) multiplies two and adds the product to a
// third. Kernels are written for a unit, AmxTiles or PortableTiles, which compute the same bits.
//
// A tile has 16 rows of 64 bytes. Sums are 16 x 16 floats. A left operand is 16 rows of 32 bfloat16
// numbers along the depth. A right operand has 16 columns of 32 numbers along the depth, of which
// two that follow each other adjoin: row i holds numbers 2 i and 2 i + 1 of each column in turn.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "simd/bfloat16.h"
#include "simd/tile_unit.h"

namespace renga::simd {

// Rows and columns of a tile of sums, and the depth of a product of tiles.
inline constexpr std::int64_t kTileEdge = 16, kTileDepth = 32;
// Numbers of an operand.
inline constexpr std::int64_t kTileSize = kTileEdge * kTileDepth;

#if defined(__x86_64__)

// The processor's tiles, configured for this thread as long as the object lives. A thread that
// leaves them configured would have 8 KiB more to save whenever it is interrupted.
class AmxTiles {
 public:
  [[gnu::always_inline]] AmxTiles() {
    struct Configuration {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    };
    static_assert(sizeof(Configuration) == 64);
    const Configuration configuration;
    asm volatile("ldtilecfg %0" ::"m"(configuration));
  }
  [[gnu::always_inline]] ~AmxTiles() { asm volatile("tilerelease" :::); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

  template <int tile>
  [[gnu::always_inline]] void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(tile));
  }
  // Rows `step` bytes apart.
  template <int tile>
  [[gnu::always_inline]] void load(const void* from, std::int64_t step) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(tile), "r"(from), "r"(step) : "memory");
  }
  template <int tile>
  [[gnu::always_inline]] void store(float* to, std::int64_t step) const {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(tile), "r"(to), "r"(step) : "memory");
  }
  template <int sum, int left, int right>
  [[gnu::always_inline]] void add_product() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sum), "i"(left), "i"(right));
  }
};

#endif

// These tiles are in memory, for tests on machines without tiles. A product sums the even and the
// odd depths apart, then both, then adds them; numbers too small to be normal count as zero.
class PortableTiles {
 public:
  template <int tile>
  void zero() {
    tiles_[tile] = {};
  }
  template <int tile>
  void load(const void* from, std::int64_t step) {
    for (int i = 0; i < 16; ++i) {
      std::memcpy(&tiles_[tile][i], static_cast<const std::byte*>(from) + i * step, 64);
    }
  }
  template <int tile>
  void store(float* to, std::int64_t step) const {
    for (int i = 0; i < 16; ++i) {
      std::memcpy(reinterpret_cast<std::byte*>(to) + i * step, &tiles_[tile][i], 64);
    }
  }
  template <int sum, int left, int right>
  void add_product() {
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 16; ++j) add_product(tiles_[sum][i][j], tiles_[left][i], right, j);
    }
  }

 private:
  using Row = std::array<std::uint32_t, 16>;

  static float normal(float x) { return std::abs(x) < 0x1p-126f ? std::copysign(0.f, x) : x; }
  // The number in the upper or the lower half of a word.
  static float upper(std::uint32_t word) {
    const std::uint32_t bits = word & 0xffff0000u;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return normal(x);
  }
  static float lower(std::uint32_t word) { return upper(word << 16); }

  void add_product(std::uint32_t& sum, const Row& left, int right, int column) {
    float even = 0, odd = 0, total;
    for (int k = 0; k < 16; ++k) {
      const std::uint32_t pair = tiles_[right][k][column];
      even = normal(std::fma(lower(left[k]), lower(pair), even));
      odd = normal(std::fma(upper(left[k]), upper(pair), odd));
    }
    std::memcpy(&total, &sum, sizeof total);
    total = normal(normal(total) + normal(even + odd));
    std::memcpy(&sum, &total, sizeof total);
  }

  std::array<std::array<Row, 16>, 8> tiles_{};
};

// Calls body(target, tiles) with the unit that is used: vectors of `target` go with it. The body is
// a lambda marked always_inline.
template <class Body>
void run_on_tiles(const Body& body) {
#if defined(__x86_64__)
  if (tile_unit() == TileUnit::amx) {
    return run_on_avx512_bfloat16([&](auto target) __attribute__((always_inline)) {
      AmxTiles tiles;
      body(target, tiles);
    });
  }
#endif
  run_on_avx2([&](auto target) __attribute__((always_inline)) {
    PortableTiles tiles;
    body(target, tiles);
  });
}

}  // namespace renga::simd
