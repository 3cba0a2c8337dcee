#include "ops/matmul/cpu/bfloat16_operands.h"

#include <algorithm>
#include <cstring>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "simd/float_vector.h"
#include "simd/transpose.h"
#include "tensor/streaming.cpu.h"

namespace renga {
namespace {

using dnnl::memory;
using simd::WideHalves;
using Target = simd::Avx512Bfloat16;
using Vector = simd::Floats<Target>;

// Matrices are converted in squares of kEdge numbers, kHalf pairs.
constexpr std::int64_t kEdge = 32, kHalf = 16;

// A product sums over the depth of its operands; the other axis is their width. Lines are rows or
// columns whose elements adjoin, `step` elements apart.
struct Source {
  std::int64_t depth, width;
  bool lines_along_depth;
  std::int64_t step;
};

// Either row by row, each of `depth` numbers, or panels of `panel` columns, in which pairs of
// numbers that follow each other in depth adjoin.
struct Layout {
  std::int64_t depth, width;  // padded
  std::int64_t panel;         // 0: by rows

  // Whether to write past the caches. A product multiplies so much for each number of a large
  // operand that it can read it from memory.
  bool should_stream(const bfloat16* data) const {
    constexpr std::int64_t kLeastSize = std::int64_t{1} << 18;
    return depth * width >= kLeastSize && depth % kEdge == 0 && starts_cache_line(data);
  }
  bfloat16* pair(bfloat16* data, std::int64_t depth_begin, std::int64_t column) const {
    return data + column / panel * panel * depth + depth_begin * panel + 2 * (column % panel);
  }
};

// The pairs of a square's half width, by position in depth or by column: 16 vectors of 16 pairs.
using Pairs = WideHalves[kHalf];

[[gnu::always_inline]] inline WideHalves load_line(const bfloat16* from) {
  return *reinterpret_cast<const simd::UnalignedWideHalves*>(from);
}
[[gnu::always_inline]] inline WideHalves load_line(const float* from) {
  return simd::to_bfloat16<Target>(simd::load_floats<Target>(from),
                                   simd::load_floats<Target>(from + kHalf));
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

// By column if lines run along the depth, else by position in depth.
template <class T>
[[gnu::always_inline]] inline void load_square(const T* from, const Source& x, Pairs (&halves)[2]) {
  if (x.lines_along_depth) {
#pragma GCC unroll 2
    for (auto& half : halves) {
      for (int i = 0; i < kHalf; ++i, from += x.step) half[i] = load_line(from);
    }
    return;
  }
  for (int i = 0; i < kHalf; ++i, from += 2 * x.step) {
    const WideHalves even = load_line(from), odd = load_line(from + x.step);
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
  load_square(square, {kEdge, kEdge, x.lines_along_depth, kEdge}, halves);
}

template <bool streams, class T>
[[gnu::always_inline]] inline void convert_square(const T* from, const Source& x, bfloat16* to,
                                                  const Layout& y, std::int64_t depth,
                                                  std::int64_t column) {
  Pairs halves[2];
  load_square(from, x, depth, column, halves);
  for (int h = 0; h < 2; ++h, column += kHalf) {
    if (column >= y.width) return;
    Pairs& pairs = halves[h];
    if (x.lines_along_depth == (y.panel > 0)) transpose(pairs);
    if (y.panel > 0) {
      bfloat16* const panel = y.pair(to, depth, column);
      for (int i = 0; i < kHalf; ++i) store_line<streams>(pairs[i], panel + 2 * i * y.panel);
      continue;
    }
    const std::int64_t rows = std::min(kHalf, y.width - column);
    const std::int64_t length = std::min(kEdge, y.depth - depth);
    for (std::int64_t i = 0; i < rows; ++i) {
      bfloat16* const row = to + (column + i) * y.depth + depth;
      if (length == kEdge) {
        store_line<streams>(pairs[i], row);
      } else {
        std::copy_n(reinterpret_cast<const bfloat16*>(&pairs[i]), length, row);
      }
    }
  }
}

template <bool streams, class T>
void convert_to(bfloat16* to, const Layout& y, const T* from, const Source& x) {
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

template <class T>
void convert(const T* from, const Source& x, bfloat16* to, const Layout& y) {
  if (y.should_stream(to)) return convert_to<true>(to, y, from, x);
  convert_to<false>(to, y, from, x);
}

onednn::Move move(const memory::desc& outside, const Source& x, const Layout& y) {
  if (!simd::has_bfloat16_dot_product()) return {};
  const bool is_float = outside.get_data_type() == memory::data_type::f32;
  return [=](const void* from, void* to) {
    auto* const halves = static_cast<bfloat16*>(to);
    if (is_float) return convert(static_cast<const float*>(from), x, halves, y);
    convert(static_cast<const bfloat16*>(from), x, halves, y);
  };
}

}  // namespace

onednn::Move left_operand_move(const memory::desc& outside, const memory::desc& inside) {
  const auto size = inside.get_dims(), steps = outside.get_strides();
  if (inside.get_inner_nblks() != 0 || inside.get_strides() != memory::dims{size[1], 1}) return {};
  const bool by_rows = steps[1] == 1;
  const Source x{size[1], size[0], by_rows, by_rows ? steps[0] : steps[1]};
  return move(outside, x, {size[1], size[0], 0});
}

onednn::Move right_operand_move(const memory::desc& outside, const memory::desc& inside) {
  const auto size = inside.get_dims(), padded = inside.get_padded_dims(),
             steps = outside.get_strides(), inside_steps = inside.get_strides(),
             blocks = inside.get_inner_blks(), axes = inside.get_inner_idxs();
  if (inside.get_data_type() != memory::data_type::bf16 || axes.size() < 2) return {};
  if (std::any_of(size.begin() + 2, size.end(), [](auto n) { return n != 1; })) return {};
  // Numbers that follow each other in depth adjoin, so that axis is the innermost one. Products
  // have blocks of 16 pairs, convolutions of one: the same where the depth is a multiple of both.
  const auto depth = static_cast<std::size_t>(axes.back());
  if (depth > 1) return {};
  const std::size_t width = 1 - depth;
  const auto axis = [](std::size_t i) { return static_cast<memory::dim>(i); };
  const std::int64_t panel = blocks[blocks.size() - 2];
  const bool by_pairs =
      blocks == memory::dims{panel, 2} && axes == memory::dims{axis(width), axis(depth)};
  const bool by_blocks = blocks == memory::dims{kHalf, panel, 2} &&
                         axes == memory::dims{axis(depth), axis(width), axis(depth)};
  if (!by_pairs && !by_blocks) return {};
  if (panel % kHalf != 0 || padded[depth] % kEdge != 0) return {};
  if (inside_steps[depth] != (by_pairs ? 2 : kEdge) * panel) return {};
  if (inside_steps[width] != padded[depth] * panel) return {};
  const bool along_depth = steps[depth] == 1;
  const Source x{size[depth], size[width], along_depth, along_depth ? steps[width] : steps[depth]};
  return move(outside, x, {padded[depth], padded[width], panel});
}

}  // namespace renga
