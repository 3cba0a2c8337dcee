#include <algorithm>
#include <array>
#include <span>

#include "devices/parallel.h"
#include "devices/single_thread.h"
#include "ops/matmul/cpu/bfloat16_matmul.h"
#include "ops/matmul/cpu/bfloat16_packing.h"
#include "ops/matmul/cpu/selection.h"
#include "ops/matmul/cpu/tile_sums.h"
#include "tensor/views.h"

namespace renga {
namespace {

// Rows of a left operand, from `first` on.
struct PackedRows {
  const bfloat16* data;  // nullptr: not packed yet
  std::int64_t step, first, count;
};

// A matrix of a product, to be packed in one part, rounded, or in two: then what rounding loses
// follows, along the depth. Only depths from `begin` on are packed.
struct Operand {
  const Matrix& matrix;
  std::int64_t index, parts;

  // Rows a power of two apart would share sets of the caches.
  std::int64_t row_step(std::int64_t depth) const {
    const std::int64_t length = parts * round_up(depth, kTileDepth);
    return length + (length % 512 == 0 ? kTileDepth : 0);
  }
  // Packs rows of a left operand.
  void pack_rows(std::int64_t begin, std::int64_t depth, std::int64_t row, std::int64_t rows,
                 bfloat16* to) const {
    pack(
        !matrix.transposed, begin, depth, row, rows, to, round_up(depth, kTileDepth),
        {.depth = round_up(depth, kTileDepth), .width = rows, .panel = 0, .step = row_step(depth)});
  }
  // Packs columns of a right operand, in panels.
  void pack_columns(std::int64_t begin, std::int64_t depth, std::int64_t column,
                    std::int64_t columns, bfloat16* to) const {
    const std::int64_t padded = round_up(depth, kTileDepth);
    pack(matrix.transposed, begin, depth, column, columns, to, padded * kTileEdge,
         {.depth = padded,
          .width = round_up(columns, kTileEdge),
          .panel = kTileEdge,
          .step = parts * padded * kTileEdge});
  }

 private:
  void pack(bool along_depth, std::int64_t begin, std::int64_t depth, std::int64_t line,
            std::int64_t lines, bfloat16* to, std::int64_t part_step,
            const PackedLayout& layout) const {
    const auto pack_from = [&](const auto* from) {
      from += along_depth ? line * matrix.leading + begin : begin * matrix.leading + line;
      for (std::int64_t part = 0; part < parts; ++part) {
        pack_bfloat16(from, {depth, lines, along_depth, matrix.leading, part == 1},
                      to + part * part_step, layout);
      }
    };
    if (matrix.array.dtype() == Dtype::float32) return pack_from(matrix.at<float>(index));
    pack_from(matrix.at<bfloat16>(index));
  }
};

// So many columns of a right operand are packed at once: they stay in the second-level cache. Fewer
// where threads would go without.
std::int64_t columns_at_once(std::int64_t columns, std::int64_t panel_step) {
  constexpr std::int64_t kCached = 1 << 20;
  const std::int64_t blocks = kCached / (panel_step * 4);
  const std::int64_t each = divide_up(divide_up(columns, kTileBlock), omp_get_max_threads());
  return std::max<std::int64_t>(1, std::min(blocks, each)) * kTileBlock;
}

// A product of one matrix each. Operands that are not packed yet are packed by the thread that
// multiplies them, so that they need not leave its second-level cache.
template <class T>
struct TileProduct {
  const Operand &left, &right;
  std::int64_t depth_begin;  // in the operands
  PackedRows rows;
  const bfloat16* panels;  // nullptr: not packed yet
  std::int64_t panel_step;
  Sizes size;
  std::span<const TileTerm> terms;
  const float* bias;
  bool accumulate;
  T* c;

  void run() const {
    const std::int64_t width = columns_at_once(size.n, panel_step);
    const std::int64_t height = std::min(kRows, round_up(size.m, kTileEdge));
    const std::int64_t row_groups = divide_up(size.m, height);
    const std::int64_t cost = std::min(height, size.m) * width * size.k / 128;
    parallel_for(
        divide_up(size.n, width) * row_groups, cost, [&](std::int64_t begin, std::int64_t end) {
          Array own_rows, own_panels;
          PackedRows from = rows;
          if (rows.data == nullptr) {
            own_rows = empty({height, rows.step}, Dtype::bfloat16);
            from.data = own_rows.as<bfloat16>();
          }
          if (panels == nullptr) {
            own_panels = empty({width / kTileEdge, panel_step}, Dtype::bfloat16);
          }
          simd::run_on_tiles([&](auto target, auto& tiles) __attribute__((always_inline)) {
            for (std::int64_t i = begin; i < end; ++i) {
              const std::int64_t row = i % row_groups * height;
              const std::int64_t row_end = std::min(size.m, row + height);
              const std::int64_t column = i / row_groups * width;
              const std::int64_t columns = std::min(width, size.n - column);
              const bfloat16* group = nullptr;
              if (panels != nullptr) {
                group = panels + column / kTileEdge * panel_step;
              } else {
                group = own_panels.as<bfloat16>();
                if (i == begin || row == 0) {
                  right.pack_columns(depth_begin, size.k, column, columns,
                                     own_panels.as<bfloat16>());
                }
              }
              if (rows.data == nullptr) {
                from.first = row;
                from.count = round_up(row_end - row, kTileEdge);
                left.pack_rows(depth_begin, size.k, row, row_end - row, own_rows.as<bfloat16>());
              }
              multiply<decltype(target)>(tiles, from, row, row_end, group, column, columns);
            }
            finish_streaming();
          });
        });
  }

 private:
  // So many rows of the left operand are packed at once.
  static constexpr std::int64_t kRows = 256;

  // A block of rows stays in the first-level cache while the columns pass, of which the panels come
  // from the second-level cache line after line.
  template <class Target, class Tiles>
  [[gnu::always_inline]] void multiply(Tiles& tiles, const PackedRows& from, std::int64_t begin,
                                       std::int64_t end, const bfloat16* group,
                                       std::int64_t first_column, std::int64_t columns) const {
    const std::int64_t steps = steps_of(terms);
    const bool streams = streams_sums(size.m * size.n * static_cast<std::int64_t>(sizeof(T)));
    // This is where summed numbers are written.
    T* to = nullptr;
    const float* added = nullptr;
    std::int64_t count = 0;
    const auto write_row = [&](const float* sums) __attribute__((always_inline)) {
      write_sums<Target>(sums, count, added, accumulate, streams, to);
      to += size.n;
    };
    TileSums sums;
    Prefetcher next;
    RowsWriter writer(steps, write_row, next);
    for (std::int64_t row = begin; row < end;) {
      const RowBlock block(row - from.first, end - from.first, from.count);
      const bfloat16* const left = from.data + block.first * from.step;
      if (rows.data != nullptr) {
        const std::int64_t after = row + kTileBlock;
        next = Prefetcher(
            rows.data + after * rows.step, std::clamp<std::int64_t>(size.m - after, 0, kTileBlock),
            2 * kTileDepth * steps, 2 * rows.step, steps * divide_up(columns, kTileBlock));
      }
      for (std::int64_t column = 0; column < columns; column += kTileBlock) {
        const std::int64_t width = std::min(kTileBlock, columns - column);
        sum_products(tiles, {left, from.step, group + column / kTileEdge * panel_step, panel_step},
                     terms, block.computed, width, false, sums, writer);
        count = width;
        added = bias == nullptr ? nullptr : bias + first_column + column;
        to = c + row * size.n + first_column + column;
        writer.begin(sums.row(row - from.first - block.first), block.written);
      }
      row += block.written;
    }
    writer.finish();
  }
};

// Products of so deep operands are summed in parts that stay in the caches.
constexpr std::int64_t kDeepest = 4096, kPart = 2048;

// Rows that tiles can be loaded from where they are, or which are packed once because several
// groups of columns meet them; otherwise those of no data. `owner` gets what is packed.
PackedRows ready_rows(const Operand& a, const Sizes& size, std::int64_t groups, Array& owner) {
  const Matrix& matrix = a.matrix;
  const bool is_ready = matrix.array.dtype() == Dtype::bfloat16 && !matrix.transposed &&
                        size.k % kTileDepth == 0 && size.m >= kTileEdge;
  if (is_ready) return {matrix.at<bfloat16>(a.index), matrix.leading, 0, size.m};
  if (groups <= 2) return {};
  const std::int64_t step = a.row_step(size.k), count = round_up(size.m, kTileEdge);
  owner = empty({count, step}, Dtype::bfloat16);
  a.pack_rows(0, size.k, 0, size.m, owner.as<bfloat16>());
  return {owner.as<bfloat16>(), step, 0, count};
}

// `kept` are the panels of b, if they are packed.
void multiply_one(const Operand& a, const Operand& b, const Array& kept, const Sizes& size,
                  const float* bias, bool accumulate, Dtype dtype, std::byte* c) {
  const bool has_panels = kept.defined(), is_deep = size.k > kDeepest;
  const std::int64_t depth = round_up(size.k, kTileDepth);
  const std::int64_t panel_depth = is_deep && !has_panels ? kPart : depth;
  const std::int64_t width = columns_at_once(size.n, b.parts * panel_depth * kTileEdge);
  Array owner;
  const PackedRows rows = ready_rows(a, size, divide_up(size.n, width), owner);
  const auto part = [&](std::int64_t begin, std::int64_t length, const float* added, bool adds,
                        Dtype to_dtype, std::byte* to) {
    const std::int64_t steps = divide_up(length, kTileDepth), packed = steps * kTileDepth;
    // These are where the part begins in each operand, and where what rounding loses does.
    const bool has_rows = rows.data != nullptr;
    const std::int64_t left = has_rows ? begin : 0, left_low = left + (has_rows ? depth : packed);
    const std::int64_t right = has_panels ? begin : 0, right_depth = has_panels ? depth : packed;
    const std::int64_t right_low = right + right_depth;
    const std::array<TileTerm, 3> terms{{{left_low, right * kTileEdge, steps},
                                         {left, right_low * kTileEdge, steps},
                                         {left, right * kTileEdge, steps}}};
    const auto used = std::span(terms).subspan(b.parts == 1 ? 2 : 0);
    const Sizes part_size{size.m, size.n, length};
    PackedRows part_rows = rows;
    if (!has_rows) part_rows.step = a.row_step(length);
    const bfloat16* const panels = has_panels ? kept.as<bfloat16>() : nullptr;
    const std::int64_t panel_step = b.parts * right_depth * kTileEdge;
    const auto multiply = [&]<class T>(T* result) {
      TileProduct<T>{a,         b,    begin, part_rows, panels, panel_step,
                     part_size, used, added, adds,      result}
          .run();
    };
    if (to_dtype == Dtype::float32) return multiply(reinterpret_cast<float*>(to));
    multiply(reinterpret_cast<bfloat16*>(to));
  };
  if (!is_deep) return part(0, size.k, bias, accumulate, dtype, c);
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

// `parts` of each operand (Operand).
void multiply_in_parts(const Array& a, const Array& b, const Array& c, const Epilogue& epilogue,
                       int parts, PackedWeightCache* cache) {
  const auto& [bias, accumulate] = epilogue;
  const Matrix left = as_matrix(a), right = as_matrix(b);
  const Array row = bias.defined() ? contiguous(cast(bias, Dtype::float32)) : bias;
  const float* const added = row.defined() ? row.as<float>() : nullptr;
  const Sizes size = sizes_of(a, c);
  const std::int64_t each = size.m * size.n, count = c.size() / each;
  Array kept;
  if (cache != nullptr && count == 1) {
    constexpr std::int64_t kLayout = -1;  // no other packing of matrices begins so
    kept = cache->get({kLayout, size.n, size.k, right.leading, right.transposed}, [&] {
      const Array panels = empty(
          {round_up(size.n, kTileEdge), parts * round_up(size.k, kTileDepth)}, Dtype::bfloat16);
      Operand{right, 0, parts}.pack_columns(0, size.k, 0, size.n, panels.as<bfloat16>());
      return panels;
    });
  }
  const auto multiply = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      multiply_one({left, i, parts}, {right, i, parts}, kept, size, added, accumulate, c.dtype(),
                   c.data() + i * each * c.itemsize());
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
