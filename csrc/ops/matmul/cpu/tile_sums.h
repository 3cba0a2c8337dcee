// The inner loops of products and convolutions on tiles: a block of 32 x 32 sums in registers, and
// the way of its numbers to the result. Everything is inlined, to be compiled for the target of its
// caller.
#pragma once

#include <algorithm>
#include <span>
#include <utility>

#include "devices/rounding.h"
#include "simd/float_vector.h"
#include "simd/tiles.h"
#include "tensor/streaming.cpu.h"

namespace renga {

using simd::kTileDepth, simd::kTileEdge, simd::kTileSize;

// Sums are computed in blocks of two by two tiles, so that each operand that is loaded is used
// twice.
inline constexpr std::int64_t kTileBlock = 2 * kTileEdge;

// A part of a sum of products: `steps` times the depth of a tile, from these elements of the
// operands on.
struct TileTerm {
  std::int64_t left, right, steps;
};

inline std::int64_t steps_of(std::span<const TileTerm> terms) {
  std::int64_t steps = 0;
  for (const TileTerm& term : terms) steps += term.steps;
  return steps;
}

// Rows of a left operand are `row_step` elements apart; panels of 16 columns of a right operand
// (bfloat16_packing.h) are `panel_step` elements apart.
struct TileOperands {
  const bfloat16* left;
  std::int64_t row_step;
  const bfloat16* right;
  std::int64_t panel_step;
};

// 32 rows of 32 sums.
struct alignas(64) TileSums {
  float numbers[kTileBlock * kTileBlock];

  const float* row(std::int64_t i) const { return numbers + i * kTileBlock; }
};

// Fetches rows of bytes into the second-level cache, an equal share of them at each of so many
// calls.
class Prefetcher {
 public:
  Prefetcher() = default;
  Prefetcher(const void* from, std::int64_t bytes, std::int64_t calls)
      : Prefetcher(from, 1, bytes, bytes, calls) {}
  Prefetcher(const void* from, std::int64_t rows, std::int64_t bytes, std::int64_t row_step,
             std::int64_t calls)
      : row_(static_cast<const std::byte*>(from)), rows_(rows), bytes_(bytes), step_(row_step) {
    if (bytes_ == step_) bytes_ *= std::exchange(rows_, 1);
    const std::int64_t lines = rows_ * divide_up(bytes_, kLine);
    share_ = divide_up(lines, std::max<std::int64_t>(1, calls));
  }

  [[gnu::always_inline]] void operator()() {
    for (std::int64_t i = 0; i < share_ && rows_ > 0; ++i) {
      __builtin_prefetch(row_ + at_, 0, 2);
      if ((at_ += kLine) < bytes_) continue;
      at_ = 0;
      row_ += step_;
      --rows_;
    }
  }

 private:
  static constexpr std::int64_t kLine = 64;
  const std::byte* row_ = nullptr;
  std::int64_t rows_ = 0, bytes_ = 0, step_ = 0, share_ = 0, at_ = 0;
};

// Vectors write the rows of sums of a block while tiles multiply the next block: a share of them at
// each of its steps, as the processor looks ahead by few instructions only. write_row(sums) is
// called for each row, in order.
template <class WriteRow>
class RowsWriter {
 public:
  // Blocks have so many steps. `next` is called at each of them.
  RowsWriter(std::int64_t steps, WriteRow& write_row, Prefetcher& next)
      : share_(divide_up(kTileBlock, std::max<std::int64_t>(1, steps))),
        write_row_(write_row),
        next_(next) {}
  // The rows that have been summed.
  [[gnu::always_inline]] void begin(const float* sums, std::int64_t rows) {
    sums_ = sums;
    left_ = rows;
  }
  [[gnu::always_inline]] void step() {
    write(std::min(share_, left_));
    next_();
  }
  [[gnu::always_inline]] void finish() { write(left_); }

 private:
  [[gnu::always_inline]] void write(std::int64_t rows) {
    for (std::int64_t i = 0; i < rows; ++i, sums_ += kTileBlock) write_row_(sums_);
    left_ -= rows;
  }

  const std::int64_t share_;
  WriteRow& write_row_;
  Prefetcher& next_;
  std::int64_t left_ = 0;
  const float* sums_ = nullptr;
};

// While tiles multiply, something else is fetched.
struct Fetching {
  Prefetcher next;
  [[gnu::always_inline]] void step() { next(); }
  void finish() const {}
};

// The sum over all terms, of `rows` by `columns` tiles; added to `sums`, or in their place.
// `meanwhile`, such as a RowsWriter, is called at each step and, before sums are stored, finished.
template <int rows, int columns, class Tiles, class Meanwhile>
[[gnu::always_inline]] inline void sum_products(Tiles& tiles, const TileOperands& operands,
                                                std::span<const TileTerm> terms, bool adds,
                                                TileSums& sums, Meanwhile& meanwhile) {
  constexpr std::int64_t across = kTileEdge, down = kTileEdge * kTileBlock;
  constexpr std::int64_t bytes = kTileBlock * sizeof(float);
  const std::int64_t row_bytes = operands.row_step * 2, below = kTileEdge * operands.row_step;
  if (adds) {
    tiles.template load<0>(sums.numbers, bytes);
    if constexpr (columns == 2) tiles.template load<1>(sums.numbers + across, bytes);
    if constexpr (rows == 2) tiles.template load<2>(sums.numbers + down, bytes);
    if constexpr (rows == 2 && columns == 2) {
      tiles.template load<3>(sums.numbers + down + across, bytes);
    }
  } else {
    tiles.template zero<0>();
    if constexpr (columns == 2) tiles.template zero<1>();
    if constexpr (rows == 2) tiles.template zero<2>();
    if constexpr (rows == 2 && columns == 2) tiles.template zero<3>();
  }
  for (const TileTerm& term : terms) {
    const bfloat16 *left = operands.left + term.left, *right = operands.right + term.right;
    for (std::int64_t step = 0; step < term.steps; ++step) {
      tiles.template load<4>(left, row_bytes);
      tiles.template load<6>(right, 64);
      tiles.template add_product<0, 4, 6>();
      meanwhile.step();
      if constexpr (columns == 2) {
        tiles.template load<7>(right + operands.panel_step, 64);
        tiles.template add_product<1, 4, 7>();
      }
      if constexpr (rows == 2) {
        tiles.template load<5>(left + below, row_bytes);
        tiles.template add_product<2, 5, 6>();
        if constexpr (columns == 2) tiles.template add_product<3, 5, 7>();
      }
      left += kTileDepth;
      right += kTileSize;
    }
  }
  meanwhile.finish();
  tiles.template store<0>(sums.numbers, bytes);
  if constexpr (columns == 2) tiles.template store<1>(sums.numbers + across, bytes);
  if constexpr (rows == 2) tiles.template store<2>(sums.numbers + down, bytes);
  if constexpr (rows == 2 && columns == 2) {
    tiles.template store<3>(sums.numbers + down + across, bytes);
  }
}

// Sums up products for as many tiles as so many rows and columns take.
template <class Tiles, class Meanwhile>
[[gnu::always_inline]] inline void sum_products(Tiles& tiles, const TileOperands& operands,
                                                std::span<const TileTerm> terms, std::int64_t rows,
                                                std::int64_t columns, bool adds, TileSums& sums,
                                                Meanwhile& meanwhile) {
  if (rows > kTileEdge) {
    if (columns > kTileEdge) {
      return sum_products<2, 2>(tiles, operands, terms, adds, sums, meanwhile);
    }
    return sum_products<2, 1>(tiles, operands, terms, adds, sums, meanwhile);
  }
  if (columns > kTileEdge) {
    return sum_products<1, 2>(tiles, operands, terms, adds, sums, meanwhile);
  }
  sum_products<1, 1>(tiles, operands, terms, adds, sums, meanwhile);
}

// The rows of a left operand that are computed at once: `written` from `row` on, within `computed`
// from `first` on. No row beyond the operand's is read: the last block may overlap the one before
// it, of which it does not write anything again.
struct RowBlock {
  RowBlock(std::int64_t row, std::int64_t end, std::int64_t all_rows) {
    written = std::min(kTileBlock, end - row);
    computed = written > kTileEdge ? kTileBlock : kTileEdge;
    if (computed > all_rows) {
      computed = kTileEdge;
      written = std::min(written, kTileEdge);
    }
    first = std::max<std::int64_t>(0, std::min(row, all_rows - computed));
  }
  std::int64_t first, computed, written;
};

// Whether results of so many bytes are written past the caches. Processors with tiles have
// second-level caches of 2 MiB, and stores that miss these take longer to read their lines than
// streamed ones take to reach memory.
constexpr bool streams_sums(std::int64_t bytes) { return bytes >= std::int64_t{1} << 22; }

// Writes 32 numbers, past the caches or not.
template <class Target>
[[gnu::always_inline]] inline void write_line(const simd::Floats<Target>& v,
                                              const simd::Floats<Target>& w, bool streams,
                                              float* to) {
  if (streams) {
    stream(v, to);
    return stream(w, to + kTileEdge);
  }
  simd::store_floats<Target>(v, to);
  simd::store_floats<Target>(w, to + kTileEdge);
}
template <class Target>
[[gnu::always_inline]] inline void write_line(const simd::Floats<Target>& v,
                                              const simd::Floats<Target>& w, bool streams,
                                              bfloat16* to) {
  const simd::WideHalves line = simd::to_bfloat16<Target>(v, w);
  if (streams) return stream(line, to);
  *reinterpret_cast<simd::UnalignedWideHalves*>(to) = line;
}

// Writes n <= 32 sums, plus `bias` unless that is nullptr, or adds them to what is there. What
// streams is to be finished (finish_streaming).
template <class Target, class T>
[[gnu::always_inline]] inline void write_sums(const float* sums, std::int64_t n, const float* bias,
                                              bool accumulate, bool streams, T* to) {
  using Vector = simd::Floats<Target>;
  std::int64_t j = 0;
  if constexpr (Target::has_bfloat16_dot_product) {
    if (n == kTileBlock) {
      Vector v = simd::load_floats<Target>(sums), w = simd::load_floats<Target>(sums + kTileEdge);
      if (bias != nullptr) {
        v += simd::load_floats<Target>(bias);
        w += simd::load_floats<Target>(bias + kTileEdge);
      }
      if (accumulate) {
        v += simd::load_floats<Target>(to);
        w += simd::load_floats<Target>(to + kTileEdge);
      }
      return write_line<Target>(v, w, streams && starts_cache_line(to), to);
    }
  }
  for (; j + Target::width <= n; j += Target::width) {
    Vector v = simd::load_floats<Target>(sums + j);
    if (bias != nullptr) v += simd::load_floats<Target>(bias + j);
    if (accumulate) v += simd::load_floats<Target>(to + j);
    simd::store_floats<Target>(v, to + j);
  }
  for (; j < n; ++j) {
    float sum = sums[j];
    if (bias != nullptr) sum += bias[j];
    if (accumulate) sum += static_cast<float>(to[j]);
    to[j] = T(sum);
  }
}

}  // namespace renga
