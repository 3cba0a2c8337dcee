#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "devices/parallel.h"
#include "devices/single_thread.h"
#include "ops/matmul/cpu/bfloat16_matmul.h"
#include "ops/matmul/cpu/bfloat16_packing.h"
#include "ops/matmul/cpu/selection.h"
#include "ops/matmul/cpu/tile_sums.h"
#include "tensor/views.h"

namespace renga {
namespace {

// Rows of a left operand; the array owns them if they were packed.
struct PackedRows {
  Array owner;
  const bfloat16* data;
  std::int64_t step, count;
};

template <class Pack>
void visit_packing(const Matrix& x, std::int64_t i, const Pack& pack) {
  if (x.array.dtype() == Dtype::float32) return pack(x.at<float>(i));
  pack(x.at<bfloat16>(i));
}

// An operand is packed in one part, rounded, or in two: then what rounding loses follows, along the
// depth. Rows that tiles can be loaded from where they are need no packing.
PackedRows packed_rows(const Matrix& a, std::int64_t i, const Sizes& size, int parts) {
  const bool is_ready = a.array.dtype() == Dtype::bfloat16 && !a.transposed &&
                        size.k % kTileDepth == 0 && size.m >= kTileEdge;
  if (is_ready) return {a.array, a.at<bfloat16>(i), a.leading, size.m};
  // Rows a power of two apart would share sets of the caches.
  const std::int64_t depth = round_up(size.k, kTileDepth);
  const std::int64_t step = parts * depth + (parts * depth % 512 == 0 ? kTileDepth : 0);
  const std::int64_t count = round_up(size.m, kTileEdge);
  const Array rows = empty({count, step}, Dtype::bfloat16);
  auto* const to = rows.as<bfloat16>();
  visit_packing(a, i, [&](const auto* from) {
    for (int part = 0; part < parts; ++part) {
      pack_bfloat16(from, {size.k, size.m, !a.transposed, a.leading, part == 1}, to + part * depth,
                    {.depth = depth, .width = size.m, .panel = 0, .step = step});
    }
  });
  return {rows, to, step, count};
}

Array packed_panels(const Matrix& b, std::int64_t i, const Sizes& size, int parts) {
  const std::int64_t depth = round_up(size.k, kTileDepth), width = round_up(size.n, kTileEdge);
  const Array panels = empty({width, parts * depth}, Dtype::bfloat16);
  visit_packing(b, i, [&](const auto* from) {
    for (int part = 0; part < parts; ++part) {
      pack_bfloat16(
          from, {size.k, size.n, b.transposed, b.leading, part == 1},
          panels.as<bfloat16>() + part * depth * kTileEdge,
          {.depth = depth, .width = width, .panel = kTileEdge, .step = parts * depth * kTileEdge});
    }
  });
  return panels;
}

// A product of one matrix each, from packed operands.
template <class T>
struct TileProduct {
  TileOperands operands;
  std::int64_t packed_rows;  // of the left operand: those beyond the product's may be read
  Sizes size;
  std::span<const TileTerm> terms;
  const float* bias;
  bool accumulate;
  T* c;

  // So many rows of the left operand and the result stay in the second-level cache while the
  // columns pass.
  std::int64_t rows_at_once() const {
    constexpr std::int64_t kCached = 1 << 19, kLeast = 4 * kTileBlock, kMostColumns = 1024;
    std::int64_t bytes = static_cast<std::int64_t>(sizeof(T)) * std::min(size.n, kMostColumns) / 2;
    for (const TileTerm& term : terms) bytes += 2 * kTileDepth * term.steps;
    return std::max(kLeast, kCached / bytes / kTileBlock * kTileBlock);
  }
  std::int64_t columns() const { return divide_up(size.n, kTileBlock); }
  std::int64_t blocks() const { return divide_up(size.m, rows_at_once()) * columns(); }

  void run() const {
    const std::int64_t cost = std::min(rows_at_once(), size.m) * kTileBlock * size.k / 128;
    const std::vector<TileTerm> parts = parts_of_terms();
    parallel_for(blocks(), cost, [&](std::int64_t begin, std::int64_t end) {
      TileSums one;
      Array many;
      auto* sums = &one;
      if (!parts.empty()) {
        many =
            empty({divide_up(rows_at_once(), kTileEdge), kTileBlock * kTileBlock}, Dtype::float32);
        sums = reinterpret_cast<TileSums*>(many.data());
      }
      simd::run_on_tiles([&](auto target, auto& tiles) __attribute__((always_inline)) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t row = i / columns() * rows_at_once();
          column_block<decltype(target)>(tiles, row, std::min(size.m, row + rows_at_once()),
                                         i % columns() * kTileBlock, parts, sums);
        }
        finish_streaming();
      });
    });
  }

 private:
  // Terms so short that what they read of a block of columns stays in the first-level cache while
  // the rows pass; none where all are that short together.
  std::vector<TileTerm> parts_of_terms() const {
    constexpr std::int64_t kSteps = 8, kMostSteps = 16;
    std::int64_t steps = 0;
    for (const TileTerm& term : terms) steps += term.steps;
    std::vector<TileTerm> parts;
    for (TileTerm rest : steps > kMostSteps ? terms : std::span<const TileTerm>()) {
      for (; rest.steps > 0; rest.steps -= kSteps) {
        parts.push_back({rest.left, rest.right, std::min(kSteps, rest.steps)});
        rest.left += kSteps * kTileDepth;
        rest.right += kSteps * kTileSize;
      }
    }
    return parts;
  }

  // `sums` are those of one block of rows, or with parts those of all.
  template <class Target, class Tiles>
  [[gnu::always_inline]] void column_block(Tiles& tiles, std::int64_t begin, std::int64_t end,
                                           std::int64_t column, std::span<const TileTerm> parts,
                                           TileSums* sums) const {
    const std::int64_t columns = std::min(kTileBlock, size.n - column);
    TileOperands block = operands;
    block.right += column / kTileEdge * operands.panel_step;
    const bool streams = pays_streaming(size.m * size.n * static_cast<std::int64_t>(sizeof(T)));
    const std::size_t count = std::max<std::size_t>(parts.size(), 1);
    for (std::size_t part = 0; part < count; ++part) {
      const auto summed = parts.empty() ? terms : parts.subspan(part, 1);
      TileSums* now = sums;
      for (std::int64_t row = begin; row < end; now += !parts.empty()) {
        const RowBlock rows(row, end, packed_rows);
        block.left = operands.left + rows.first * operands.row_step;
        sum_products(tiles, block, summed, rows.computed, columns, *now, part > 0);
        const std::int64_t last = row + rows.written;
        for (std::int64_t i = part + 1 < count ? last : row; i < last; ++i) {
          write_sums<Target>(now->row(i - rows.first), columns,
                             bias == nullptr ? nullptr : bias + column, accumulate, streams,
                             c + i * size.n + column);
        }
        row = last;
      }
    }
  }
};

// Products of so deep operands are summed in parts that stay in the caches.
constexpr std::int64_t kDeepest = 4096, kPart = 2048;

void multiply_one(const PackedRows& a, const Array& panels, const Sizes& size, int parts,
                  const float* bias, bool accumulate, Dtype dtype, std::byte* c) {
  const std::int64_t depth = round_up(size.k, kTileDepth);
  const TileOperands operands{a.data, a.step, panels.as<bfloat16>(), parts * depth * kTileEdge};
  const auto part = [&](std::int64_t begin, std::int64_t length, const float* added, bool adds,
                        Dtype to_dtype, std::byte* to) {
    const std::int64_t low = begin + depth, steps = divide_up(length, kTileDepth);
    const std::array<TileTerm, 3> terms{{{low, begin * kTileEdge, steps},
                                         {begin, low * kTileEdge, steps},
                                         {begin, begin * kTileEdge, steps}}};
    const auto used = std::span(terms).subspan(parts == 1 ? 2 : 0);
    const Sizes part_size{size.m, size.n, length};
    const auto multiply = [&]<class T>(T* result) {
      TileProduct<T>{operands, a.count, part_size, used, added, adds, result}.run();
    };
    if (to_dtype == Dtype::float32) return multiply(reinterpret_cast<float*>(to));
    multiply(reinterpret_cast<bfloat16*>(to));
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

// `parts` of each operand (packed_rows).
void multiply_in_parts(const Array& a, const Array& b, const Array& c, const Epilogue& epilogue,
                       int parts, PackedWeightCache* cache) {
  const auto& [bias, accumulate] = epilogue;
  const Matrix left = as_matrix(a), right = as_matrix(b);
  const Array row = bias.defined() ? contiguous(cast(bias, Dtype::float32)) : bias;
  const float* const added = row.defined() ? row.as<float>() : nullptr;
  const Sizes size{c.shape(c.ndim() - 2), c.shape(c.ndim() - 1), a.shape(a.ndim() - 1)};
  const std::int64_t each = size.m * size.n, count = c.size() / each;
  const auto panels = [&](std::int64_t i) {
    const auto pack = [&] { return packed_panels(right, i, size, parts); };
    if (cache == nullptr || count > 1) return pack();
    constexpr std::int64_t kLayout = -1;  // no other packing of matrices begins so
    const Array kept = cache->get({kLayout, size.n, size.k, right.leading, right.transposed}, pack);
    return kept.defined() ? kept : pack();
  };
  const auto multiply = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      multiply_one(packed_rows(left, i, size, parts), panels(i), size, parts, added, accumulate,
                   c.dtype(), c.data() + i * each * c.itemsize());
    }
  };
  if (!shares_out_pairs(count, each * size.k)) return multiply(0, count);
  parallel_for(count, each * size.k / 64, [&](std::int64_t begin, std::int64_t end) {
    const SingleThread alone;
    multiply(begin, end);
  });
}

}  // namespace

void multiply_on_tiles(const Array& a, const Array& b, const Array& c, const Epilogue& epilogue,
                       PackedWeightCache* cache) {
  multiply_in_parts(a, b, c, epilogue, 1, cache);
}

void multiply_bf16x3_on_tiles(const Array& a, const Array& b, const Array& c, bool accumulate) {
  multiply_in_parts(a, b, c, {{}, accumulate}, 2, nullptr);
}

}  // namespace renga
