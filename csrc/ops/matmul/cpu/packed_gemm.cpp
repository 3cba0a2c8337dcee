#include "ops/matmul/cpu/packed_gemm.h"

#include <algorithm>

#include "simd/float_vector.h"
#include "simd/tiles.h"
#include "simd/transpose.h"

namespace renga {
namespace {

using simd::dispatch, simd::Floats, simd::load_floats, simd::store_floats, simd::VectorTypes;

// The unit of a product: one float, or a pair of bfloat16 numbers.
using Pair [[gnu::may_alias]] = std::uint32_t;

// The layout of the left operand: element (m, k) of a run is at data[m * row_step + k *
// depth_step]. There are `runs` runs of `run` depths, `run_step` apart.
struct LeftLayout {
  std::int64_t row_step, depth_step, run, runs, run_step;
};

// A Prefetch has what to prefetch for the next tile of c, which is read in runs too short for the
// hardware prefetcher: per depth, as many numbers from `left` on as a tile has rows, and
// `right_step` from `right` on.
template <class Number>
struct Prefetch {
  const Number *left, *right;
  std::int64_t right_step;
};

template <class Target>
[[gnu::always_inline]] inline void load_row(const float* from, Floats<Target>& row) {
  row = load_floats<Target>(from);
}
template <class Target>
[[gnu::always_inline]] inline void load_row(const Pair* from, Floats<Target>& row) {
  row = load_floats<Target>(reinterpret_cast<const float*>(from));
}

template <class Target>
[[gnu::always_inline]] inline void add_product(const float& left, const Floats<Target>& right,
                                               Floats<Target>& sum) {
  sum += left * right;
}
template <class Target>
[[gnu::always_inline]] inline void add_product(const Pair& left, const Floats<Target>& right,
                                               Floats<Target>& sum) {
  if constexpr (Target::has_bfloat16_dot_product) {
    typename VectorTypes<Target>::Words lefts = left - typename VectorTypes<Target>::Words{};
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(right), "v"(lefts));
  }
}

// A tile of Rows by Vectors registers of c over the whole depth. c stays in registers, so that only
// a and b are read. With `accumulate`, c is added last: short sums that are added up are more exact
// than one long sum.
template <class Target, int Rows, int Vectors, class Number>
[[gnu::always_inline]] inline void multiply_tile(const Number* a, const LeftLayout layout,
                                                 const Number* b, float* c, bool accumulate,
                                                 Prefetch<Number> next) {
  constexpr std::int64_t width = Target::width;
  Floats<Target> sums[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      sums[r][v] = Floats<Target>{};
      __builtin_prefetch(c + r * kPanel + v * width);
    }
  }
  for (std::int64_t i = 0; i < layout.runs;
       ++i, a += layout.run_step, next.left += layout.run_step) {
    const Number *from = a, *left = next.left;
    for (std::int64_t k = 0; k < layout.run; ++k, from += layout.depth_step, b += kPanel) {
      __builtin_prefetch(left);
      left += Rows;
      __builtin_prefetch(next.right);
      next.right += next.right_step;
      Floats<Target> row[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) load_row<Target>(b + v * width, row[v]);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) {
          add_product<Target>(from[r * layout.row_step], row[v], sums[r][v]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      float* const to = c + r * kPanel + v * width;
      if (accumulate) sums[r][v] += load_floats<Target>(to);
      store_floats<Target>(sums[r][v], to);
    }
  }
}

// All `rows` rows of c. The steps between rows and between depths are constants, which saves
// registers. prefetch(row, tile_rows) returns what to prefetch while the tile from `row` on is
// computed.
template <std::int64_t Row, std::int64_t Depth, class Number, class PrefetchOf>
void multiply(const Number* a, std::int64_t run, std::int64_t runs, std::int64_t run_step,
              const Number* b, float* c, std::int64_t rows, bool accumulate,
              const PrefetchOf& prefetch) {
  static_assert(kPanelRows % 8 == 0 && kPanel % 32 == 0);
  using Factor = std::conditional_t<std::is_same_v<Number, float>, float, bfloat16>;
  dispatch<Factor>([=](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    constexpr int tile_rows = Target::width == 16 ? 8 : 4, vectors = 2;
    const LeftLayout layout{Row, Depth, run, runs, run_step};
    for (std::int64_t r = 0; r < rows; r += tile_rows) {
      for (int column = 0; column < kPanel; column += Target::width * vectors) {
        multiply_tile<Target, tile_rows, vectors>(a + r * layout.row_step, layout, b + column,
                                                  c + r * kPanel + column, accumulate,
                                                  prefetch(r, tile_rows));
      }
    }
  });
}

// A row of a panel of `a` has Row numbers, and so many rows of `b` belong to that panel.
template <std::int64_t Row, class Number>
void multiply_panels(const Number* a, std::int64_t a_step, std::int64_t panels, const Number* b,
                     float* c, std::int64_t rows, bool accumulate) {
  // Panels whose part of b stays in the L1 cache.
  constexpr std::int64_t most = 4;
  for (std::int64_t p = 0; p < panels; p += most) {
    const std::int64_t count = std::min(most, panels - p);
    const Number *const next_a = a + count * a_step, *const next_b = b + count * Row * kPanel;
    // The next rows, or the first ones of the next panels; each tile prefetches some of their b.
    const auto prefetch = [=](std::int64_t row, int tile_rows) __attribute__((always_inline)) {
      const std::int64_t next = row + tile_rows;
      return Prefetch<Number>{next < rows ? a + next * Row : next_a,
                              next_b + row * count * Row * kPanel / rows,
                              tile_rows * kPanel / rows};
    };
    multiply<Row, 1>(a, Row, count, a_step, b, c, rows, accumulate || p > 0, prefetch);
    a = next_a;
    b = next_b;
  }
}

// Each tile prefetches some of the next product's a and b.
template <class Number>
void multiply_transposed(const Number* a, const Number* b, std::int64_t depth, float* c,
                         bool accumulate, const Number* next_a, const Number* next_b) {
  const auto prefetch = [=](std::int64_t row, int tile_rows) __attribute__((always_inline)) {
    return Prefetch<Number>{next_a + row * depth, next_b + row * depth, tile_rows};
  };
  multiply<1, kPanel>(a, depth, 1, 0, b, c, kPanel, accumulate, prefetch);
}

// On tiles (simd/tiles.h), rows of panels are those of left operands, and rows of interleaved
// matrices are those of two right operands, side by side.
constexpr std::int64_t kStep = kPanel * static_cast<std::int64_t>(sizeof(float));
static_assert(kPanel == 2 * simd::kTileEdge && kPanel == simd::kTileDepth);

// c (+)= the sum of products of `panels` left operands and as many right ones, of 16 or 32 rows.
// Right operands are kPanel squares.
template <int blocks, class Tiles>
[[gnu::always_inline]] inline void multiply_on_tiles(Tiles& tiles, const bfloat16* a,
                                                     std::int64_t a_step, std::int64_t panels,
                                                     const bfloat16* b, float* c, bool accumulate) {
  constexpr std::int64_t edge = simd::kTileEdge, a_bytes = kPanel * 2, b_bytes = kPanel * 4;
  if (accumulate) {
    tiles.template load<0>(c, kStep);
    tiles.template load<1>(c + edge, kStep);
    if constexpr (blocks == 2) {
      tiles.template load<2>(c + edge * kPanel, kStep);
      tiles.template load<3>(c + edge * kPanel + edge, kStep);
    }
  } else {
    tiles.template zero<0>();
    tiles.template zero<1>();
    if constexpr (blocks == 2) {
      tiles.template zero<2>();
      tiles.template zero<3>();
    }
  }
  for (std::int64_t p = 0; p < panels; ++p, a += a_step, b += kPanel * kPanel) {
    tiles.template load<4>(a, a_bytes);
    tiles.template load<6>(b, b_bytes);
    tiles.template load<7>(b + kPanel, b_bytes);
    tiles.template add_product<0, 4, 6>();
    tiles.template add_product<1, 4, 7>();
    if constexpr (blocks == 2) {
      tiles.template load<5>(a + edge * kPanel, a_bytes);
      tiles.template add_product<2, 5, 6>();
      tiles.template add_product<3, 5, 7>();
    }
  }
  tiles.template store<0>(c, kStep);
  tiles.template store<1>(c + edge, kStep);
  if constexpr (blocks == 2) {
    tiles.template store<2>(c + edge * kPanel, kStep);
    tiles.template store<3>(c + edge * kPanel + edge, kStep);
  }
}

// The left operands of the transpose of an interleaved matrix: for each kPanel rows of it, kPanel
// rows of kPanel numbers.
void transpose_interleaved(const bfloat16* a, std::int64_t depth, bfloat16* to) {
  simd::dispatch<float>([=](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    constexpr std::int64_t n = Target::width, row = kPanel / 2;  // in words, of pairs
    const auto* const words = reinterpret_cast<const float*>(a);
    auto* const result = reinterpret_cast<float*>(to);
    for (std::int64_t pair = 0; pair < depth / 2; pair += n) {
      for (std::int64_t column = 0; column < kPanel; column += n) {
        Floats<Target> square[n];
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < n; ++i) {
          square[i] = load_floats<Target>(words + (pair + i) * kPanel + column);
        }
        simd::transpose<Target>(square);
        float* const at = result + pair / row * kPanel * row + column * row + pair % row;
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < n; ++i) store_floats<Target>(square[i], at + i * row);
      }
    }
  });
}

const Pair* pairs(const bfloat16* numbers) { return reinterpret_cast<const Pair*>(numbers); }

}  // namespace

void packed_gemm(const float* a, std::int64_t a_step, std::int64_t panels, const float* b, float* c,
                 std::int64_t rows, bool accumulate) {
  multiply_panels<kPanel>(a, a_step, panels, b, c, rows, accumulate);
}

void packed_gemm(const bfloat16* a, std::int64_t a_step, std::int64_t panels, const bfloat16* b,
                 float* c, std::int64_t rows, bool accumulate) {
  multiply_panels<kPanel / 2>(pairs(a), a_step / 2, panels, pairs(b), c, rows, accumulate);
}

void packed_gemm_transposed(const float* a, const float* b, std::int64_t depth, float* c,
                            bool accumulate, const float* next_a, const float* next_b) {
  multiply_transposed(a, b, depth, c, accumulate, next_a, next_b);
}

void packed_gemm_transposed(const bfloat16* a, const bfloat16* b, std::int64_t depth, float* c,
                            bool accumulate, const bfloat16* next_a, const bfloat16* next_b) {
  multiply_transposed(pairs(a), pairs(b), depth / 2, c, accumulate, pairs(next_a), pairs(next_b));
}

void packed_gemms(const float* a, std::int64_t a_step, std::int64_t panels, const float* b,
                  std::int64_t b_step, std::int64_t count, float* c, std::int64_t c_step,
                  std::int64_t rows, bool accumulate) {
  for (std::int64_t i = 0; i < count; ++i) {
    packed_gemm(a, a_step, panels, b + i * b_step, c + i * c_step, rows, accumulate);
  }
}

void packed_gemms(const bfloat16* a, std::int64_t a_step, std::int64_t panels, const bfloat16* b,
                  std::int64_t b_step, std::int64_t count, float* c, std::int64_t c_step,
                  std::int64_t rows, bool accumulate) {
  if (!simd::has_tiles() || rows % simd::kTileEdge != 0) {
    for (std::int64_t i = 0; i < count; ++i) {
      packed_gemm(a, a_step, panels, b + i * b_step, c + i * c_step, rows, accumulate);
    }
    return;
  }
  simd::run_on_tiles([&](auto, auto& tiles) __attribute__((always_inline)) {
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t row = 0; row < rows; row += kPanel) {
        const bfloat16* const left = a + row * kPanel;
        const bfloat16* const right = b + i * b_step;
        float* const to = c + i * c_step + row * kPanel;
        if (rows - row >= kPanel) {
          multiply_on_tiles<2>(tiles, left, a_step, panels, right, to, accumulate);
        } else {
          multiply_on_tiles<1>(tiles, left, a_step, panels, right, to, accumulate);
        }
      }
    }
  });
}

void packed_gemms_transposed(const float* a, const float* b, std::int64_t depth,
                             std::int64_t b_step, std::int64_t count, float* c,
                             std::int64_t c_step) {
  for (std::int64_t i = 0; i < count; ++i) {
    packed_gemm_transposed(a, b + i * b_step, depth, c + i * c_step, true, a, b);
  }
}

void packed_gemms_transposed(const bfloat16* a, const bfloat16* b, std::int64_t depth,
                             std::int64_t b_step, std::int64_t count, float* c,
                             std::int64_t c_step) {
  // Rows that are not whole tiles are few.
  constexpr std::int64_t most = 128;
  if (!simd::has_tiles() || depth % kPanel != 0 || depth > most) {
    for (std::int64_t i = 0; i < count; ++i) {
      packed_gemm_transposed(a, b + i * b_step, depth, c + i * c_step, true, a, b);
    }
    return;
  }
  alignas(64) bfloat16 transposed[most * kPanel];
  transpose_interleaved(a, depth, transposed);
  simd::run_on_tiles([&](auto, auto& tiles) __attribute__((always_inline)) {
    for (std::int64_t i = 0; i < count; ++i) {
      multiply_on_tiles<2>(tiles, transposed, kPanel * kPanel, depth / kPanel, b + i * b_step,
                           c + i * c_step, true);
    }
  });
}

}  // namespace renga
