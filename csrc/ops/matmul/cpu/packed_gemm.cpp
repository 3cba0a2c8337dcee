#include "ops/matmul/cpu/packed_gemm.h"

#include <algorithm>

#include "simd/float_vector.h"

namespace renga {
namespace {

using simd::dispatch, simd::Floats, simd::load_floats, simd::store_floats, simd::VectorTypes;

// Numbers as the sums take them: one float, or two bfloat16 numbers side by side.
using Pair [[gnu::may_alias]] = std::uint32_t;

// Where element (m, k) of the left operand is: data[m * row + k * depth], and where the next run of
// `run` depths starts.
struct Walk {
  std::int64_t row, depth, run, runs, next_run;
};

// What the next tile of c reads is fetched while one is computed, as it lies in too many short
// pieces for the hardware to see it coming: from `left` on as many numbers per depth as a tile has
// rows, and from `right` on `right_step`.
template <class Number>
struct Ahead {
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

// A tile of Rows by Vectors registers of c, in one go through the whole depth: the registers hold
// c, so that memory sees only a and b. What c held is added last: a long sum made of short ones is
// more exact.
template <class Target, int Rows, int Vectors, class Number>
[[gnu::always_inline]] inline void multiply_tile(const Number* a, const Walk walk, const Number* b,
                                                 float* c, bool accumulate, Ahead<Number> ahead) {
  constexpr int width = Target::width;
  Floats<Target> sums[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      sums[r][v] = Floats<Target>{};
      __builtin_prefetch(c + r * kPanel + v * width);
    }
  }
  for (std::int64_t i = 0; i < walk.runs; ++i, a += walk.next_run, ahead.left += walk.next_run) {
    const Number *from = a, *left = ahead.left;
    for (std::int64_t k = 0; k < walk.run; ++k, from += walk.depth, b += kPanel) {
      __builtin_prefetch(left);
      left += Rows;
      __builtin_prefetch(ahead.right);
      ahead.right += ahead.right_step;
      Floats<Target> row[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) load_row<Target>(b + v * width, row[v]);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) {
          add_product<Target>(from[r * walk.row], row[v], sums[r][v]);
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

// All of c, of `rows` rows. The steps from row to row and depth to depth are constants, which saves
// registers. ahead(row, tile's rows) tells what to fetch while the tile from a row on is computed.
template <std::int64_t Row, std::int64_t Depth, class Number, class AheadOf>
void multiply(const Number* a, std::int64_t run, std::int64_t runs, std::int64_t next_run,
              const Number* b, float* c, std::int64_t rows, bool accumulate, const AheadOf& ahead) {
  static_assert(kPanelRows % 8 == 0 && kPanel % 32 == 0);
  using Factor = std::conditional_t<std::is_same_v<Number, float>, float, bfloat16>;
  dispatch<Factor>([=](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    constexpr int tile_rows = Target::width == 16 ? 8 : 4, vectors = 2;
    const Walk walk{Row, Depth, run, runs, next_run};
    for (std::int64_t r = 0; r < rows; r += tile_rows) {
      for (int column = 0; column < kPanel; column += Target::width * vectors) {
        multiply_tile<Target, tile_rows, vectors>(a + r * walk.row, walk, b + column,
                                                  c + r * kPanel + column, accumulate,
                                                  ahead(r, tile_rows));
      }
    }
  });
}

// Row numbers make up a row of a panel of `a`, and as many rows a panel's part of `b`.
template <std::int64_t Row, class Number>
void multiply_parts(const Number* a, std::int64_t a_step, std::int64_t panels, const Number* b,
                    float* c, std::int64_t rows) {
  // A part of b at a time that stays in the nearest cache.
  constexpr std::int64_t most = 4;
  for (std::int64_t p = 0; p < panels; p += most) {
    const std::int64_t part = std::min(most, panels - p);
    const Number *const next_a = a + part * a_step, *const next_b = b + part * Row * kPanel;
    // The next rows, after the last ones those of the next part, of whose b each tile fetches its
    // share.
    const auto ahead = [=](std::int64_t row, int tile_rows) __attribute__((always_inline)) {
      const std::int64_t next = row + tile_rows;
      return Ahead<Number>{next < rows ? a + next * Row : next_a,
                           next_b + row * part * Row * kPanel / rows, tile_rows * kPanel / rows};
    };
    multiply<Row, 1>(a, Row, part, a_step, b, c, rows, p > 0, ahead);
    a = next_a;
    b = next_b;
  }
}

// Each tile fetches its share of the next product's a and b.
template <class Number>
void multiply_transposed(const Number* a, const Number* b, std::int64_t depth, float* c,
                         bool accumulate, const Number* next_a, const Number* next_b) {
  const auto ahead = [=](std::int64_t row, int tile_rows) __attribute__((always_inline)) {
    return Ahead<Number>{next_a + row * depth, next_b + row * depth, tile_rows};
  };
  multiply<1, kPanel>(a, depth, 1, 0, b, c, kPanel, accumulate, ahead);
}

const Pair* pairs(const bfloat16* numbers) { return reinterpret_cast<const Pair*>(numbers); }

}  // namespace

void multiply_panels(const float* a, std::int64_t a_step, std::int64_t panels, const float* b,
                     float* c, std::int64_t rows) {
  multiply_parts<kPanel>(a, a_step, panels, b, c, rows);
}

void multiply_panels(const bfloat16* a, std::int64_t a_step, std::int64_t panels, const bfloat16* b,
                     float* c, std::int64_t rows) {
  multiply_parts<kPanel / 2>(pairs(a), a_step / 2, panels, pairs(b), c, rows);
}

void multiply_transposed_panel(const float* a, const float* b, std::int64_t depth, float* c,
                               bool accumulate, const float* next_a, const float* next_b) {
  multiply_transposed(a, b, depth, c, accumulate, next_a, next_b);
}

void multiply_transposed_panel(const bfloat16* a, const bfloat16* b, std::int64_t depth, float* c,
                               bool accumulate, const bfloat16* next_a, const bfloat16* next_b) {
  multiply_transposed(pairs(a), pairs(b), depth / 2, c, accumulate, pairs(next_a), pairs(next_b));
}

}  // namespace renga
