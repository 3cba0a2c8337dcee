#include "ops/matmul/cpu/panel_tile.h"

#include <algorithm>
#include <array>
#include <utility>

namespace renga::panels {
namespace {

template <int lines>
struct PrefetchLines {
  Ahead ahead;

  std::int64_t depths(std::int64_t all) const {
    return lines > 0 ? std::min(all, ahead.depths) : 0;
  }
  [[gnu::always_inline]] void operator()(std::int64_t) {
    if constexpr (lines > 0) __builtin_prefetch(ahead.next, 0, 2);
    if constexpr (lines > 1) __builtin_prefetch(ahead.next + ahead.second, 0, 2);
    if constexpr (lines > 2) __builtin_prefetch(ahead.next + ahead.third, 0, 2);
    ahead.next += ahead.step;
  }
};

using Multiply = void (*)(const Tile&, const Ahead&);

template <class Target, int Rows, int Vectors, int lines>
void multiply_on(const Tile& tile, const Ahead& ahead) {
  simd::run_on<Target>([&](auto) __attribute__((always_inline)) {
    multiply_tile<Target, Rows, Vectors>(tile, PrefetchLines<lines>{ahead});
  });
}

// Tiles of one row and more.
template <class Target, int Vectors, int lines, int... Before>
constexpr std::array<Multiply, sizeof...(Before)> tiles_of(std::integer_sequence<int, Before...>) {
  return {multiply_on<Target, Before + 1, Vectors, lines>...};
}

template <class Target, int Vectors>
void multiply_by_rows(std::int64_t rows, const Tile& tile, const Ahead& ahead) {
  constexpr std::make_integer_sequence<int, kMostRows<Target>> all;
  static constexpr std::array tiles{
      tiles_of<Target, Vectors, 0>(all), tiles_of<Target, Vectors, 1>(all),
      tiles_of<Target, Vectors, 2>(all), tiles_of<Target, Vectors, 3>(all)};
  tiles[static_cast<std::size_t>(ahead.lines)][static_cast<std::size_t>(rows - 1)](tile, ahead);
}

template <class Target>
void multiply_on_machine(std::int64_t rows, const Tile& tile, const Ahead& ahead) {
  if (tile.columns > Target::width) return multiply_by_rows<Target, kVectors>(rows, tile, ahead);
  multiply_by_rows<Target, 1>(rows, tile, ahead);
}

}  // namespace

void multiply_tile(std::int64_t rows, const Tile& tile, const Ahead& ahead) {
#if defined(__x86_64__)
  if (simd::has_avx512()) return multiply_on_machine<simd::Avx512>(rows, tile, ahead);
#endif
  multiply_on_machine<simd::Avx2>(rows, tile, ahead);
}

}  // namespace renga::panels
