#include "ops/matmul/cpu/panel_tile.h"

#include <array>
#include <utility>

namespace renga::panels {
namespace {

using Multiply = void (*)(const Tile&, const StridedPrefetch&);

template <class Target, int Rows, int Vectors>
void multiply_on(const Tile& tile, const StridedPrefetch& prefetch) {
  simd::run_on<Target>([&](auto) __attribute__((always_inline)) {
    multiply_tile<Target, Rows, Vectors>(tile, prefetch);
  });
}

// Tiles of one row and more.
template <class Target, int Vectors, int... Before>
constexpr std::array<Multiply, sizeof...(Before)> tiles_of(std::integer_sequence<int, Before...>) {
  return {multiply_on<Target, Before + 1, Vectors>...};
}

template <class Target>
void multiply_by_rows(std::int64_t rows, const Tile& tile, const StridedPrefetch& prefetch) {
  constexpr std::make_integer_sequence<int, kMostRows<Target>> all;
  static constexpr auto narrow = tiles_of<Target, 1>(all), wide = tiles_of<Target, kVectors>(all);
  (tile.columns > Target::width ? wide : narrow)[static_cast<std::size_t>(rows - 1)](tile,
                                                                                     prefetch);
}

}  // namespace

void multiply_tile(std::int64_t rows, const Tile& tile, const StridedPrefetch& prefetch) {
#if defined(__x86_64__)
  if (simd::has_avx512()) return multiply_by_rows<simd::Avx512>(rows, tile, prefetch);
#endif
  multiply_by_rows<simd::Avx2>(rows, tile, prefetch);
}

}  // namespace renga::panels
