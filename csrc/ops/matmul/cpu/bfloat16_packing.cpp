#include "ops/matmul/cpu/bfloat16_packing.h"

#include <algorithm>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "simd/float_vector.h"
#include "simd/transpose.h"
#include "tensor/streaming.cpu.h"

namespace renga {
namespace {

using simd::WideHalves;
using Target = simd::Avx512Bfloat16;
using Vector = simd::Floats<Target>;

// Matrices are converted in squares of kEdge numbers, kHalf pairs.
constexpr std::int64_t kEdge = 32, kHalf = 16;

using Source = PackedSource;

bfloat16* pair_at(const PackedLayout& y, bfloat16* data, std::int64_t depth, std::int64_t column) {
  return data + column / y.panel * y.step + depth * y.panel + 2 * (column % y.panel);
}

// The pairs of a square's half width, by position in depth or by column: 16 vectors of 16 pairs.
using Pairs = WideHalves[kHalf];

[[gnu::always_inline]] inline WideHalves load_line(const bfloat16* from, bool) {
  return *reinterpret_cast<const simd::UnalignedWideHalves*>(from);
}
[[gnu::always_inline]] inline Vector residual_of(const Vector& v) {
  return v - simd::from_bfloat16<Target>(simd::to_bfloat16<Target>(v));
}
[[gnu::always_inline]] inline WideHalves load_line(const float* from, bool residual) {
  const Vector a = simd::load_floats<Target>(from), b = simd::load_floats<Target>(from + kHalf);
  if (residual) return simd::to_bfloat16<Target>(residual_of(a), residual_of(b));
  return simd::to_bfloat16<Target>(a, b);
}

template <bool streams>
[[gnu::always_inline]] inline void store_line(const WideHalves& line, bfloat16* to) {
  if constexpr (streams) {
    stream(line, to);
  } else {
    *reinterpret_cast<simd::UnalignedWideHalves*>(to) = line;
  }
}

// Numbers of a half of a and of b in turn.
template <int first>
[[gnu::always_inline]] inline WideHalves in_turn(const WideHalves& a, const WideHalves& b) {
  return [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, (first + i / 2 + i % 2 * kEdge)...);
  }
  (std::make_integer_sequence<int, kEdge>());
}

// Loads lines by column if they run along the depth, else by position in depth.
template <class T>
[[gnu::always_inline]] inline void load_square(const T* from, const Source& x, Pairs (&halves)[2]) {
  if (x.lines_along_depth) {
#pragma GCC unroll 2
    for (auto& half : halves) {
      for (int i = 0; i < kHalf; ++i, from += x.step) half[i] = load_line(from, x.residual);
    }
    return;
  }
  for (int i = 0; i < kHalf; ++i, from += 2 * x.step) {
    const WideHalves even = load_line(from, x.residual);
    const WideHalves odd = load_line(from + x.step, x.residual);
    halves[0][i] = in_turn<0>(even, odd);
    halves[1][i] = in_turn<kHalf>(even, odd);
  }
}

[[gnu::always_inline]] inline void transpose(Pairs& pairs) {
  Vector rows[kHalf];
#pragma GCC unroll 16
  for (int i = 0; i < kHalf; ++i) rows[i] = reinterpret_cast<Vector>(pairs[i]);
  simd::transpose<Target>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < kHalf; ++i) pairs[i] = reinterpret_cast<WideHalves>(rows[i]);
}

// Into the second level of the caches; `from` may be beyond the matrix.
template <class T>
[[gnu::always_inline]] inline void prefetch_square(const T* from, const Source& x) {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (int i = 0; i < kEdge; ++i, from += x.step) {
    for (std::int64_t j = 0; j < kEdge; j += line) __builtin_prefetch(from + j, 0, 2);
  }
}

// The square that begins at `depth` and `column`, surrounded by zeros where it passes the edges of
// the matrix.
template <class T>
[[gnu::always_inline]] inline void load_square(const T* data, const Source& x, std::int64_t depth,
                                               std::int64_t column, Pairs (&halves)[2]) {
  const std::int64_t deep = std::min(kEdge, x.depth - depth);
  const std::int64_t wide = std::min(kEdge, x.width - column);
  const T* const from =
      data + (x.lines_along_depth ? column * x.step + depth : depth * x.step + column);
  if (deep == kEdge && wide == kEdge) {
    prefetch_square(from + 2 * kEdge, x);
    return load_square(from, x, halves);
  }
  T square[kEdge * kEdge] = {};
  const std::int64_t lines = x.lines_along_depth ? wide : deep;
  const std::int64_t length = x.lines_along_depth ? deep : wide;
  for (std::int64_t i = 0; i < lines; ++i)
    std::copy_n(from + i * x.step, length, square + i * kEdge);
  load_square(square, {kEdge, kEdge, x.lines_along_depth, kEdge, x.residual}, halves);
}

template <bool streams, class T>
[[gnu::always_inline]] inline void convert_square(const T* from, const Source& x, bfloat16* to,
                                                  const PackedLayout& y, std::int64_t depth,
                                                  std::int64_t column) {
  Pairs halves[2];
  load_square(from, x, depth, column, halves);
  for (int h = 0; h < 2; ++h, column += kHalf) {
    if (column >= y.width) return;
    Pairs& pairs = halves[h];
    if (x.lines_along_depth == (y.panel > 0)) transpose(pairs);
    if (y.panel > 0) {
      bfloat16* const panel = pair_at(y, to, depth, column);
      for (int i = 0; i < kHalf; ++i) store_line<streams>(pairs[i], panel + 2 * i * y.panel);
      continue;
    }
    const std::int64_t rows = std::min(kHalf, y.width - column);
    const std::int64_t length = std::min(kEdge, y.depth - depth);
    for (std::int64_t i = 0; i < rows; ++i) {
      bfloat16* const row = to + (column + i) * y.step + depth;
      if (length == kEdge) {
        store_line<streams>(pairs[i], row);
      } else {
        std::copy_n(reinterpret_cast<const bfloat16*>(&pairs[i]), length, row);
      }
    }
  }
}

template <bool streams, class T>
void convert_to(bfloat16* to, const PackedLayout& y, const T* from, const Source& x) {
  const std::int64_t deep = divide_up(y.depth, kEdge), wide = divide_up(y.width, kEdge);
  // Along the lines, so that memory is read in its order.
  const std::int64_t along = x.lines_along_depth ? deep : wide;
  constexpr std::int64_t cost = kEdge * kEdge / 4;
  parallel_for(deep * wide, cost, [&](std::int64_t begin, std::int64_t end) {
    simd::run_on_avx512_bfloat16([&](auto) __attribute__((always_inline)) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t line = i / along * kEdge, position = i % along * kEdge;
        convert_square<streams>(from, x, to, y, x.lines_along_depth ? position : line,
                                x.lines_along_depth ? line : position);
      }
    });
    if constexpr (streams) finish_streaming();
  });
}

// A line of `n` numbers, at most kEdge, and zeros.
template <class T>
[[gnu::always_inline]] inline WideHalves load_line(const T* from, std::int64_t n) {
  if (n >= kEdge) return load_line(from, false);
  alignas(64) T line[kEdge] = {};
  std::copy_n(from, n, line);
  return load_line(line, false);
}

// Two rows as pairs, by column.
template <class T>
[[gnu::always_inline]] inline void interleave(const T* first, const T* second, std::int64_t width,
                                              bfloat16* to, const PackedLayout& y) {
  for (std::int64_t column = 0; column < y.width; column += kEdge) {
    const std::int64_t n = width - column;
    const WideHalves a = load_line(first + column, n), b = load_line(second + column, n);
    bfloat16* const panel = to + column / y.panel * y.step;
    store_line<false>(in_turn<0>(a, b), panel);
    if (column + kHalf < y.width) store_line<false>(in_turn<kHalf>(a, b), panel + y.step);
  }
}

// Converts one number after another, for machines without instructions for bfloat16.
template <class T>
void convert_slowly(bfloat16* to, const PackedLayout& y, const T* from, const Source& x) {
  for (std::int64_t column = 0; column < y.width; ++column) {
    for (std::int64_t depth = 0; depth < round_up(y.depth, y.panel > 0 ? kEdge : 1); ++depth) {
      bfloat16* const at = y.panel > 0 ? pair_at(y, to, depth / 2 * 2, column) + depth % 2
                                       : to + column * y.step + depth;
      const bool is_inside = column < x.width && depth < x.depth;
      const std::int64_t i =
          x.lines_along_depth ? column * x.step + depth : depth * x.step + column;
      float number = is_inside ? static_cast<float>(from[i]) : 0.f;
      if (x.residual) number -= static_cast<float>(bfloat16(number));
      *at = bfloat16(number);
    }
  }
}

}  // namespace

template <class T>
void pack_bfloat16(const T* from, const PackedSource& x, bfloat16* to, const PackedLayout& y) {
  if (!simd::has_bfloat16_dot_product()) return convert_slowly(to, y, from, x);
  if (y.streams) return convert_to<true>(to, y, from, x);
  convert_to<false>(to, y, from, x);
}
template void pack_bfloat16(const float*, const PackedSource&, bfloat16*, const PackedLayout&);
template void pack_bfloat16(const bfloat16*, const PackedSource&, bfloat16*, const PackedLayout&);

template <class T>
void pack_pairs(std::span<const T* const> rows, std::int64_t width, bfloat16* to,
                const PackedLayout& y, std::int64_t copy_step) {
  const auto visit = [&](const auto& pack) __attribute__((always_inline)) {
    for (std::int64_t i = 0; i < y.depth; ++i) {
      const std::int64_t copy = i % 2;
      if (copy > 0 && copy_step == 0) continue;
      const T* const* const row = rows.data() + i;
      pack(row[0], row[1], to + copy * copy_step + (i - copy) * y.panel);
    }
  };
  if (simd::has_bfloat16_dot_product()) {
    return simd::run_on_avx512_bfloat16([&](auto) __attribute__((always_inline)) {
      visit([&](const T* first, const T* second, bfloat16* pairs)
                __attribute__((always_inline)) { interleave(first, second, width, pairs, y); });
    });
  }
  visit([&](const T* first, const T* second, bfloat16* pairs) {
    for (std::int64_t c = 0; c < y.width; ++c) {
      bfloat16* const pair = pair_at(y, pairs, 0, c);
      pair[0] = bfloat16(c < width ? static_cast<float>(first[c]) : 0.f);
      pair[1] = bfloat16(c < width ? static_cast<float>(second[c]) : 0.f);
    }
  });
}
template void pack_pairs(std::span<const float* const>, std::int64_t, bfloat16*,
                         const PackedLayout&, std::int64_t);
template void pack_pairs(std::span<const bfloat16* const>, std::int64_t, bfloat16*,
                         const PackedLayout&, std::int64_t);

}  // namespace renga
