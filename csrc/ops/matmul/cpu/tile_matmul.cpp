#include "ops/matmul/cpu/tile_matmul.h"

#include <algorithm>
#include <span>

#include "devices/parallel.h"
#include "devices/single_thread.h"
#include "ops/matmul/cpu/bfloat16_packing.h"
#include "ops/matmul/cpu/matrix.h"
#include "ops/matmul/cpu/tile_sums.h"
#include "tensor/views.h"

namespace renga {
namespace {

// Rows of a left operand; the array owns them if they were packed.
struct PackedRows {
  Array owner;
  const bfloat16* data;
  std::int64_t step;
};

template <class Pack>
void visit_packing(const Matrix& x, std::int64_t i, const Pack& pack) {
  if (x.array.dtype() == Dtype::float32) return pack(x.at<float>(i));
  pack(x.at<bfloat16>(i));
}

// Rows that tiles can be loaded from where they are need no packing.
PackedRows packed_rows(const Matrix& a, std::int64_t i, const Sizes& size) {
  const bool is_ready = a.array.dtype() == Dtype::bfloat16 && !a.transposed &&
                        size.k % kTileDepth == 0 && size.m >= kTileEdge;
  if (is_ready) return {a.array, a.at<bfloat16>(i), a.leading};
  // Rows a power of two apart would share sets of the caches.
  const std::int64_t depth = round_up(size.k, kTileDepth);
  const std::int64_t step = depth % 512 == 0 ? depth + kTileDepth : depth;
  const Array rows = empty({std::max(size.m, kTileEdge), step}, Dtype::bfloat16);
  auto* const to = rows.as<bfloat16>();
  const PackedSource source{size.k, size.m, !a.transposed, a.leading};
  visit_packing(a, i, [&](const auto* from) {
    pack_bfloat16(from, source, to, {.depth = depth, .width = size.m, .panel = 0, .step = step});
  });
  return {rows, to, step};
}

Array packed_panels(const Matrix& b, std::int64_t i, const Sizes& size) {
  const std::int64_t depth = round_up(size.k, kTileDepth), width = round_up(size.n, kTileBlock);
  const Array panels = empty({width, depth}, Dtype::bfloat16);
  const PackedSource source{size.k, size.n, b.transposed, b.leading};
  visit_packing(b, i, [&](const auto* from) {
    pack_bfloat16(from, source, panels.as<bfloat16>(),
                  {.depth = depth, .width = width, .panel = kTileEdge, .step = kTileEdge * depth});
  });
  return panels;
}

// A product of one matrix each, from packed operands.
template <class T>
struct TileProduct {
  TileOperands operands;
  Sizes size;
  std::span<const TileTerm> terms;
  const float* bias;
  bool accumulate;
  T* c;

  // So many rows of the left operand stay in the second-level cache while the columns pass.
  std::int64_t rows_at_once() const {
    constexpr std::int64_t kCached = 1 << 19, kLeast = 4 * kTileBlock;
    const std::int64_t depth = round_up(size.k, kTileDepth);
    return std::max(kLeast, kCached / (2 * depth) / kTileBlock * kTileBlock);
  }
  std::int64_t columns() const { return divide_up(size.n, kTileBlock); }
  std::int64_t blocks() const { return divide_up(size.m, rows_at_once()) * columns(); }

  void run() const {
    const std::int64_t cost = std::min(rows_at_once(), size.m) * kTileBlock * size.k / 128;
    parallel_for(blocks(), cost, [&](std::int64_t begin, std::int64_t end) {
      simd::run_on_tiles([&](auto target, auto& tiles) __attribute__((always_inline)) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t row = i / columns() * rows_at_once();
          column_block<decltype(target)>(tiles, row, std::min(size.m, row + rows_at_once()),
                                         i % columns() * kTileBlock);
        }
      });
    });
  }

 private:
  // The last block of rows may overlap the one before it: then it writes its last rows only.
  template <class Target, class Tiles>
  [[gnu::always_inline]] void column_block(Tiles& tiles, std::int64_t begin, std::int64_t end,
                                           std::int64_t column) const {
    const std::int64_t columns = std::min(kTileBlock, size.n - column);
    TileOperands block = operands;
    block.right += column / kTileEdge * operands.panel_step;
    TileSums sums;
    for (std::int64_t row = begin; row < end; row += kTileBlock) {
      const std::int64_t rows = std::min(kTileBlock, end - row);
      const std::int64_t computed = round_up(rows, kTileEdge);
      const std::int64_t first = std::max<std::int64_t>(0, std::min(row, size.m - computed));
      block.left = operands.left + first * operands.row_step;
      sum_products(tiles, block, terms, computed, columns, sums);
      for (std::int64_t i = row; i < row + rows; ++i) {
        write_sums<Target>(sums.row(i - first), columns, bias == nullptr ? nullptr : bias + column,
                           accumulate, c + i * size.n + column);
      }
    }
  }
};

template <class T>
void multiply_packed(const TileOperands& operands, const Sizes& size,
                     std::span<const TileTerm> terms, const float* bias, bool accumulate, T* c) {
  TileProduct<T>{operands, size, terms, bias, accumulate, c}.run();
}

void multiply_packed(const TileOperands& operands, const Sizes& size,
                     std::span<const TileTerm> terms, const float* bias, bool accumulate,
                     Dtype dtype, std::byte* c) {
  if (dtype == Dtype::float32) {
    return multiply_packed(operands, size, terms, bias, accumulate, reinterpret_cast<float*>(c));
  }
  multiply_packed(operands, size, terms, bias, accumulate, reinterpret_cast<bfloat16*>(c));
}

// Products of so deep operands are summed in parts that stay in the caches.
constexpr std::int64_t kDeepest = 4096, kPart = 2048;

void multiply_one(const PackedRows& a, const Array& panels, const Sizes& size, const float* bias,
                  bool accumulate, Dtype dtype, std::byte* c) {
  const std::int64_t depth = round_up(size.k, kTileDepth);
  const TileOperands operands{a.data, a.step, panels.as<bfloat16>(), kTileEdge * depth};
  const auto part = [&](std::int64_t begin, std::int64_t length, const float* added, bool adds,
                        Dtype to_dtype, std::byte* to) {
    const TileTerm term{begin, begin * kTileEdge, divide_up(length, kTileDepth)};
    multiply_packed(operands, {size.m, size.n, length}, {&term, 1}, added, adds, to_dtype, to);
  };
  if (size.k <= kDeepest) return part(0, size.k, bias, accumulate, dtype, c);
  const bool in_place = dtype == Dtype::float32;
  const Array sums = in_place ? Array() : empty({size.m, size.n}, Dtype::float32);
  std::byte* const to = in_place ? c : sums.data();
  for (std::int64_t begin = 0; begin < size.k; begin += kPart) {
    const bool adds = begin > 0 || (in_place && accumulate);
    part(begin, std::min(kPart, size.k - begin), begin == 0 ? bias : nullptr, adds, Dtype::float32,
         to);
  }
  if (in_place) return;
  auto* const result = reinterpret_cast<bfloat16*>(c);
  parallel_for(size.m * size.n, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float before = accumulate ? static_cast<float>(result[i]) : 0.f;
      result[i] = bfloat16(before + sums.as<float>()[i]);
    }
  });
}

}  // namespace

void multiply_on_tiles(const Array& a, const Array& b, const Array& bias, const Array& c,
                       bool accumulate, PackedWeightCache* cache) {
  constexpr std::int64_t kSmall = 1 << 24;  // products of two matrices
  const Matrix left = as_matrix(a), right = as_matrix(b);
  const Array row = bias.defined() ? contiguous(cast(bias, Dtype::float32)) : bias;
  const float* const added = row.defined() ? row.as<float>() : nullptr;
  const Sizes size{c.shape(c.ndim() - 2), c.shape(c.ndim() - 1), a.shape(a.ndim() - 1)};
  const std::int64_t each = size.m * size.n, count = c.size() / each;
  const auto panels = [&](std::int64_t i) {
    const auto pack = [&] { return packed_panels(right, i, size); };
    if (cache == nullptr || count > 1) return pack();
    constexpr std::int64_t kLayout = -1;  // no other packing of matrices begins so
    const Array kept =
        cache->get({kLayout, size.n, size.k, right.leading, right.transposed}, pack);
    return kept.defined() ? kept : pack();
  };
  const auto multiply = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      multiply_one(packed_rows(left, i, size), panels(i), size, added, accumulate, c.dtype(),
                   c.data() + i * each * c.itemsize());
    }
  };
  if (count == 1 || each * size.k > kSmall) return multiply(0, count);
  parallel_for(count, each * size.k / 64, [&](std::int64_t begin, std::int64_t end) {
    const SingleThread alone;
    multiply(begin, end);
  });
}

}  // namespace renga
