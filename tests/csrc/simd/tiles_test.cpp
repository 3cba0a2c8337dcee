#include "simd/tiles.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace renga::simd {
namespace {

using Operand = std::vector<std::uint16_t>;
using Sums = std::vector<float>;

std::uint16_t upper_half(float x) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
}
float from_upper_half(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

template <class Tiles>
Sums multiply(const Operand& left, const Operand& right, Sums sums) {
  Tiles tiles;
  tiles.template load<2>(sums.data(), 64);
  tiles.template load<4>(left.data(), 64);
  tiles.template load<7>(right.data(), 64);
  tiles.template add_product<2, 4, 7>();
  tiles.template store<2>(sums.data(), 64);
  return sums;
}

// Normal numbers, or some whose products and sums are too small to be normal, too.
template <class Numbers>
void draw(std::mt19937& generator, bool small, Numbers& numbers) {
  std::normal_distribution<float> normal;
  for (auto& x : numbers) {
    const int exponent = small ? -60 - static_cast<int>(generator() % 80) : 0;
    const float drawn = std::ldexp(normal(generator), exponent);
    if constexpr (std::is_same_v<Numbers, Operand>) {
      x = upper_half(drawn);
    } else {
      x = drawn;
    }
  }
}

}  // namespace

TEST_CASE("a product of tiles sums pairs of numbers along the depth") {
  std::mt19937 generator(1);
  Operand left(512), right(512);
  Sums sums(256);
  for (std::uint16_t& x : left) x = upper_half(static_cast<float>(generator() % 17) - 8);
  for (std::uint16_t& x : right) x = upper_half(static_cast<float>(generator() % 17) - 8);
  for (float& x : sums) x = static_cast<float>(generator() % 100);
  const Sums found = multiply<PortableTiles>(left, right, sums);
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 16; ++j) {
      float expected = sums[16 * i + j];
      for (std::size_t k = 0; k < 32; ++k) {
        expected += from_upper_half(left[32 * i + k]) *
                    from_upper_half(right[32 * (k / 2) + 2 * j + k % 2]);
      }
      CHECK(found[16 * i + j] == expected);
    }
  }
}

TEST_CASE("numbers too small to be normal count as zero in products of tiles") {
  const Operand tiny(512, 1), ones(512, upper_half(1));
  CHECK(multiply<PortableTiles>(tiny, ones, Sums(256)) == Sums(256, 0.f));
  CHECK(multiply<PortableTiles>(Operand(512), ones, Sums(256, 1e-40f)) == Sums(256, 0.f));
}

#if defined(__x86_64__)
TEST_CASE("the processor's tiles have the bits of the portable ones") {
  if (tile_unit() != TileUnit::amx) {
    MESSAGE("skipped: this processor has no tiles");
    return;
  }
  std::mt19937 generator(2);
  Operand left(512), right(512);
  Sums sums(256);
  for (int i = 0; i < 200; ++i) {
    const bool small = i % 2 == 1;
    draw(generator, small, left);
    draw(generator, small, right);
    draw(generator, small, sums);
    const Sums expected = multiply<PortableTiles>(left, right, sums);
    const Sums found = multiply<AmxTiles>(left, right, sums);
    CHECK(std::memcmp(found.data(), expected.data(), sizeof(float) * found.size()) == 0);
  }
}
#endif

TEST_CASE("only units that the machine has can be chosen") {
  CHECK_THROWS_AS(override_tile_unit("mma"), std::invalid_argument);
  override_tile_unit("none");
  CHECK(!has_tiles());
  override_tile_unit("portable");
  CHECK(std::string(name_of(tile_unit())) == "portable");
  override_tile_unit({});
  CHECK(tile_unit() != TileUnit::portable);
}

}  // namespace renga::simd
