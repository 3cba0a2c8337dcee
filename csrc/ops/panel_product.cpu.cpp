#include "ops/panel_product.cpu.h"

#include <algorithm>

#include "devices/cpu/onednn.h"

namespace renga {
namespace {

// Where element (m, k) of the left operand is: data[m * row + k * depth], and where the next run of
// `run` depths starts.
struct Walk {
  std::int64_t row, depth, run, runs, next_run;
};

// A tile of Rows by Vectors registers of Width floats of c, in one go through the whole depth: the
// registers hold c, so that memory sees only a and b. What c held is added last: a long sum made of
// short ones is more exact. Inlined, so that it is compiled for the instruction set of its caller.
template <int Width, int Rows, int Vectors>
[[gnu::always_inline]] inline void multiply_tile(const float* a, const Walk walk, const float* b,
                                                 float* c, bool accumulate) {
  using Lanes [[gnu::vector_size(4 * Width), gnu::aligned(4), gnu::may_alias]] = float;
  Lanes sums[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) sums[r][v] = Lanes{};
  }
  for (std::int64_t i = 0; i < walk.runs; ++i, a += walk.next_run) {
    const float* from = a;
    for (std::int64_t k = 0; k < walk.run; ++k, from += walk.depth, b += kPanel) {
      Lanes row[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) row[v] = *reinterpret_cast<const Lanes*>(b + v * Width);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const float left = from[r * walk.row];
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) sums[r][v] += left * row[v];
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      float* const to = c + r * kPanel + v * Width;
      if (accumulate) sums[r][v] += *reinterpret_cast<const Lanes*>(to);
      *reinterpret_cast<Lanes*>(to) = sums[r][v];
    }
  }
}

// All of c, of `rows` rows.
template <int Width, int Rows, int Vectors>
[[gnu::always_inline]] inline void multiply(const float* a, const Walk walk, const float* b,
                                            float* c, std::int64_t rows, bool accumulate) {
  for (std::int64_t r = 0; r < rows; r += Rows) {
    for (int column = 0; column < kPanel; column += Width * Vectors) {
      multiply_tile<Width, Rows, Vectors>(a + r * walk.row, walk, b + column,
                                          c + r * kPanel + column, accumulate);
    }
  }
}

using Multiply = void (*)(const float*, const Walk, const float*, float*, std::int64_t, bool);

// The steps from row to row and depth to depth are constants, which saves registers.
template <std::int64_t Row, std::int64_t Depth>
struct Kernels {
  static_assert(kPanelRows % 8 == 0 && kPanel % 32 == 0);
  [[gnu::target("avx512f,avx512vl,avx512dq,avx512bw")]] static void by_avx512(
      const float* a, const Walk walk, const float* b, float* c, std::int64_t rows,
      bool accumulate) {
    multiply<16, 8, 2>(a, {Row, Depth, walk.run, walk.runs, walk.next_run}, b, c, rows, accumulate);
  }
  static void by_default(const float* a, const Walk walk, const float* b, float* c,
                         std::int64_t rows, bool accumulate) {
    multiply<8, 4, 2>(a, {Row, Depth, walk.run, walk.runs, walk.next_run}, b, c, rows, accumulate);
  }
  static Multiply best() { return onednn::has_avx512() ? by_avx512 : by_default; }
};

}  // namespace

void multiply_panels(const float* a, std::int64_t a_step, std::int64_t panels, const float* b,
                     float* c, std::int64_t rows) {
  static const Multiply multiply = Kernels<kPanel, 1>::best();
  // A part of b at a time that stays in the nearest cache.
  constexpr std::int64_t part = 4;
  for (std::int64_t p = 0; p < panels; p += part) {
    multiply(a + p * a_step, {kPanel, 1, kPanel, std::min(part, panels - p), a_step},
             b + p * kPanel * kPanel, c, rows, p > 0);
  }
}

void multiply_transposed_panel(const float* a, const float* b, std::int64_t depth, float* c,
                               bool accumulate) {
  static const Multiply multiply = Kernels<1, kPanel>::best();
  multiply(a, {1, kPanel, depth, 1, 0}, b, c, kPanel, accumulate);
}

}  // namespace renga
