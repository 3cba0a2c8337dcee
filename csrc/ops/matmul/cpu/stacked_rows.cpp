#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "ops/matmul/cpu/float_kernels.h"
#include "ops/matmul/cpu/panel_tile.h"
#include "ops/matmul/cpu/parts.h"
#include "tensor/array.h"

namespace renga {
namespace {

using panels::kMostRows, panels::kPanelColumns, panels::kVectors;
using simd::dispatch_for, simd::Floats, simd::load_floats, simd::store_floats;

// A block of b is at most so deep and has at most so many numbers: 720 KB.
constexpr std::int64_t kDepth = 384, kNumbers = 180 * 1024;
// Columns of `a` are copied in groups of so many: whole tiles on all machines, and whole lines of
// the cache.
constexpr std::int64_t kGroup = 48, kGroupSize = kGroup * kDepth;
// So many columns of a copied group lie side by side. A tile of AVX-512 reads most of each line of
// the cache anyway; narrow ones get lines of their own, which fit into the first-level cache beside
// a panel.
template <class Target>
constexpr std::int64_t kLine = Target::width == 16 ? kGroup : kMostRows<Target>;
// Rows of b are packed so many at a time: as many numbers of a panel are written one after another.
constexpr std::int64_t kPackedRows = 4;

// Returns the step from panel to panel of a block.
std::int64_t panel_step(std::int64_t depth, std::int64_t width) {
  return round_up(depth, kPackedRows) * width;
}

// A group of rows of c, which are columns of `a`, by the panels of a block: all of them, or a term.
struct Place {
  std::int64_t row, row_end, panel, panel_end, depth, depth_end;
};

// All places of a part of c, block by block.
class Places {
 public:
  Places(const Part& part, std::int64_t k, std::int64_t width)
      : part_(part), k_(k), depth_(part_depth(k, kDepth)) {
    const std::int64_t all = part.panel_end - part.panel;
    panels_ = divide_up(all, divide_up(all, kNumbers / panel_step(depth_, width)));
  }

  Place first() const { return at(part_.row, part_.panel, 0); }
  bool ends(const Place& place) const { return place.panel >= part_.panel_end; }
  Place next(const Place& place) const {
    if (place.row_end < part_.row_end) return at(place.row_end, place.panel, place.depth);
    if (place.depth_end < k_) return at(part_.row, place.panel, place.depth_end);
    return at(part_.row, place.panel_end, 0);
  }
  bool begins_block(const Place& place) const { return place.row == part_.row; }

 private:
  Place at(std::int64_t row, std::int64_t panel, std::int64_t depth) const {
    return {row,   std::min(row + kGroup, part_.row_end),
            panel, std::min(panel + panels_, part_.panel_end),
            depth, std::min(depth + depth_, k_)};
  }

  Part part_;
  std::int64_t k_, depth_, panels_;
};

// A group that is being copied: rows of up to kGroup numbers.
struct GroupCopy {
  const float* const* rows = nullptr;
  std::int64_t offset = 0, width = 0, count = 0;
  float* to = nullptr;
  std::int64_t done = 0;

  GroupCopy() = default;
  GroupCopy(const StackedRows& a, const Place& place, float* to)
      : rows(a.rows.data() + place.depth),
        offset(place.row),
        width(place.row_end - place.row),
        count(place.depth_end - place.depth),
        to(to) {}

  // Copies some more rows.
  template <class Target>
  [[gnu::always_inline]] void advance(std::int64_t more) {
    constexpr std::int64_t line = kLine<Target>;
    for (const std::int64_t end = std::min(done + more, count); done < end; ++done) {
      const float* from = rows[done] + offset;
      float* line_to = to + done * line;
      std::int64_t left = width;
      for (; left >= line; left -= line, from += line, line_to += kDepth * line) {
        std::memcpy(line_to, from, sizeof(float) * line);
      }
      std::copy_n(from, left, line_to);
    }
  }
};

// A Prefetch is what is fetched into the second-level cache while a tile is computed, at its first
// depths.
struct Prefetch {
  static constexpr std::int64_t kLines = 4;  // of the cache, that a row of a group may be in
  static constexpr std::array<std::int64_t, kLines> kOffsets = {0, 16, 32, kGroup - 1};
  static constexpr std::int64_t kPlaces = 3 * kMostRows<simd::Avx512>;

  const float* c = nullptr;
  std::array<std::int64_t, kPlaces> places = {};  // of the lines of a tile of c
  // The rows of the group that are copied before the next tile.
  const float* const* rows = nullptr;
  std::int64_t offset = 0, count = 0;

  std::int64_t depths(std::int64_t all) const {
    return std::min(all, std::max(kPlaces, count * kLines));
  }
  [[gnu::always_inline]] void operator()(std::int64_t depth) const {
    if (depth < kPlaces) __builtin_prefetch(c + places[static_cast<std::size_t>(depth)], 0, 2);
    if (depth >= count * kLines) return;
    const float* const row = rows[depth / kLines] + offset;
    __builtin_prefetch(row + kOffsets[static_cast<std::size_t>(depth % kLines)], 0, 2);
  }
};

// Packs the panels of a block.
template <class Target>
[[gnu::always_inline]] inline void pack_block(const StackedRows& b, const Place& place, float* to) {
  constexpr std::int64_t width = kPanelColumns<Target>;
  const std::int64_t step = panel_step(place.depth_end - place.depth, width);
  const std::int64_t end = std::min(place.panel_end * width, b.width);
  const auto row_at = [&](std::int64_t depth) __attribute__((always_inline)) {
    return b.rows[static_cast<std::size_t>(std::min(depth, place.depth_end - 1))];
  };
  for (std::int64_t depth = place.depth; depth < place.depth_end; depth += kPackedRows) {
    const float *from[kPackedRows], *ahead[kPackedRows];
    for (std::int64_t i = 0; i < kPackedRows; ++i) {
      from[i] = row_at(depth + i);
      ahead[i] = row_at(depth + kPackedRows + i);
    }
    float* panel = to + (depth - place.depth) * width;
    std::int64_t column = place.panel * width;
    for (; column + width <= end; column += width, panel += step) {
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < kPackedRows; ++i) {
#pragma GCC unroll 2
        for (std::int64_t v = 0; v < width; v += Target::width) {
          __builtin_prefetch(ahead[i] + column + v, 0, 2);
          store_floats<Target>(load_floats<Target>(from[i] + column + v), panel + i * width + v);
        }
      }
    }
    if (column >= end) continue;
    for (std::int64_t i = 0; i < kPackedRows; ++i) {
      float* const row = panel + i * width;
      std::fill(std::copy(from[i] + column, from[i] + end, row), row + width, 0.0f);
    }
  }
}

// c = `group` times the panels of a block + addend, tile by tile. Meanwhile, the next group is
// copied.
template <class Target>
[[gnu::always_inline]] inline void multiply_group(const Place& place, const float* group,
                                                  const float* block, GroupCopy& next, float* c,
                                                  std::int64_t n, const Addend& addend) {
  constexpr std::int64_t width = kPanelColumns<Target>, height = kMostRows<Target>;
  panels::Tile tile{.a = nullptr,
                    .row_step = 1,
                    .depth_step = kLine<Target>,
                    .factors = nullptr,
                    .factor_step = width,
                    .depth = place.depth_end - place.depth,
                    .c = nullptr,
                    .ldc = n,
                    .columns = 0,
                    .addend = {}};
  Prefetch prefetch;
  for (std::int64_t i = 0; i < 3 * height; ++i) {
    const std::array<std::int64_t, 3> lines = {0, width / 2, width - 1};
    prefetch.places[static_cast<std::size_t>(i)] =
        i / 3 * n + lines[static_cast<std::size_t>(i % 3)];
  }
  prefetch.offset = next.offset;
  const std::int64_t tiles =
      divide_up(place.row_end - place.row, height) * (place.panel_end - place.panel);
  const std::int64_t rows_each = divide_up(next.count, tiles);
  for (std::int64_t row = place.row; row < place.row_end; row += height) {
    const std::int64_t line = (row - place.row) / kLine<Target>;
    tile.a = group + line * kDepth * kLine<Target> + (row - place.row) % kLine<Target>;
    tile.rows = static_cast<int>(std::min(height, place.row_end - row));
    tile.factors = block;
    for (std::int64_t panel = place.panel; panel < place.panel_end; ++panel) {
      const std::int64_t column = panel * width;
      tile.columns = static_cast<int>(std::min(width, n - column));
      tile.c = c + row * n + column;
      tile.addend = addend.from(row, column);
      next.advance<Target>(rows_each);
      prefetch.c = tile.c;
      prefetch.rows = next.rows + next.done;
      prefetch.count = std::min(rows_each, next.count - next.done);
      if (tile.columns > Target::width) {
        panels::multiply_thirds<Target, kVectors>(tile, prefetch);
      } else {
        panels::multiply_thirds<Target, 1>(tile, prefetch);
      }
      tile.factors += panel_step(tile.depth, width);
    }
  }
}

template <class Target>
[[gnu::always_inline]] inline void multiply_part(const StackedRows& a, const StackedRows& b,
                                                 const Part& part, float* block, float* groups,
                                                 float* c, const Addend& addend) {
  const auto k = static_cast<std::int64_t>(a.rows.size());
  const Places places(part, k, kPanelColumns<Target>);
  float *group = groups, *other = groups + kGroupSize;
  Place place = places.first();
  GroupCopy first(a, place, group);
  first.advance<Target>(first.count);
  while (!places.ends(place)) {
    if (places.begins_block(place)) pack_block<Target>(b, place, block);
    const Place next = places.next(place);
    GroupCopy copy = places.ends(next) ? GroupCopy() : GroupCopy(a, next, other);
    multiply_group<Target>(place, group, block, copy, c, b.width,
                           place.depth == 0 ? addend : Addend{c, b.width});
    std::swap(group, other);
    place = next;
  }
}

}  // namespace

void multiply_stacked_rows(const StackedRows& a, const StackedRows& b, float* c,
                           const Addend& addend) {
  const auto k = static_cast<std::int64_t>(a.rows.size());
  for_parts(a.width, b.width, k, kGroup, panels::panel_columns(), [&](const Part& part) {
    const Array block = empty({kNumbers}, Dtype::float32);
    // A tile may have more rows than there are.
    const Array groups = zeros({2 * kGroupSize}, Dtype::float32);
    dispatch_for<float>([&](auto target) __attribute__((always_inline)) {
      multiply_part<decltype(target)>(a, b, part, block.as<float>(), groups.as<float>(), c, addend);
    });
  });
}

}  // namespace renga
