#include <algorithm>

#include "devices/parallel.h"
#include "devices/single_thread.h"
#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/tiles/merged_groups.h"
#include "ops/convolution/cpu/tiles/operands_by_gathered_pixels.h"
#include "ops/convolution/cpu/tiles/operands_by_pixels.h"
#include "ops/convolution/cpu/tiles/operands_by_samples.h"
#include "ops/convolution/cpu/tiles/tile_convolution.h"
#include "simd/transpose.h"

namespace renga::convolution::tiles {
namespace {

// The terms of each element of the filter, which have as many steps, in parts: what these read of
// 32 columns stays in the first-level cache while they pass by several blocks of rows or elements.
// All are one part for a single block, and where elements have different terms.
class PartsOfTerms {
 public:
  PartsOfTerms(std::span<const std::vector<TileTerm>> terms, std::int64_t passes) : terms_(terms) {
    bool are_same = true;
    for (const auto& tap : terms) {
      are_same = are_same && tap.size() == terms[0].size();
      most_terms_ = std::max(most_terms_, static_cast<std::int64_t>(tap.size()));
      for (const TileTerm& term : tap) steps_ = term.steps;
    }
    constexpr std::int64_t kSteps = 8;
    const std::int64_t steps = are_same && passes > 1 ? kSteps : this->steps();
    pieces_ = divide_up(steps_, std::max<std::int64_t>(1, steps));
    terms_at_once_ = std::max<std::int64_t>(1, steps / steps_);
    length_ = divide_up(steps_, pieces_);
    count_ = std::max<std::int64_t>(1, divide_up(most_terms_, terms_at_once_) * pieces_);
  }
  std::int64_t steps() const { return steps_ * most_terms_; }
  std::int64_t count() const { return count_; }
  // Calls use(terms), of which there may be none.
  template <class Use>
  [[gnu::always_inline]] void visit(std::int64_t tap, std::int64_t part, const Use& use) const {
    const std::span<const TileTerm> all = terms_[static_cast<std::size_t>(tap)];
    const auto size = static_cast<std::int64_t>(all.size());
    const std::int64_t first = std::min(size, part / pieces_ * terms_at_once_);
    const auto terms =
        all.subspan(static_cast<std::size_t>(first),
                    static_cast<std::size_t>(std::min(terms_at_once_, size - first)));
    if (pieces_ == 1 || terms.empty()) return use(terms);
    const std::int64_t at = part % pieces_ * length_;
    const TileTerm piece{terms[0].left + at * kTileDepth, terms[0].right + at * kTileSize,
                         std::clamp<std::int64_t>(steps_ - at, 0, length_)};
    use(std::span(&piece, 1));
  }

 private:
  std::span<const std::vector<TileTerm>> terms_;
  std::int64_t steps_ = 1, most_terms_ = 0, pieces_, terms_at_once_, length_, count_;
};

// Weights (group, column, row, tap), without the padding of what is packed; (row, column) of one
// group and element if they are `by_rows`.
struct Weights {
  float* data;
  std::int64_t columns, rows, taps;
  bool by_rows = false;

  std::int64_t column_step() const { return rows * taps; }
  float* at(std::int64_t group, std::int64_t column, std::int64_t row) const {
    return data + (group * columns + column) * column_step() + row * taps;
  }
};

// Writes sums (block of rows, tap, row, column) of `rows` rows and `columns` columns as weights
// from `to` on. Vectors may read beyond the last row, up to a block of rows.
template <class Target>
[[gnu::always_inline]] inline void write_weights(const float* sums, std::int64_t rows,
                                                 std::int64_t columns, const Weights& weights,
                                                 float* to) {
  constexpr std::int64_t width = Target::width;
  const std::int64_t taps = weights.taps, length = rows * taps;
  std::int64_t row = 0, tap = 0;
  for (std::int64_t i = 0; i < length; i += width) {
    const std::int64_t count = std::min(width, length - i);
    const float* lines[width];
    for (std::int64_t k = 0; k < width; ++k) {
      const std::int64_t block = row / kTileBlock * taps + tap;
      lines[k] = sums + (block * kTileBlock + row % kTileBlock) * kTileBlock;
      if (++tap == taps) tap = 0, ++row;
    }
    for (std::int64_t column = 0; column < columns; column += width) {
      simd::Floats<Target> square[width];
#pragma GCC unroll 16
      for (std::int64_t k = 0; k < width; ++k) {
        square[k] = simd::load_floats<Target>(lines[k] + column);
      }
      simd::transpose<Target>(square);
      const std::int64_t used = std::min(width, columns - column);
      float* at = to + column * weights.column_step() + i;
#pragma GCC unroll 16
      for (std::int64_t k = 0; k < width; ++k, at += weights.column_step()) {
        if (k >= used) break;
        if (count == width) {
          simd::store_floats<Target>(square[k], at);
          continue;
        }
        for (std::int64_t j = 0; j < count; ++j) at[j] = square[k][j];
      }
    }
  }
}

// The sums of all elements of the filter, in units: all rows (channels of x) by some columns (of
// gy) of a group, so many that they stay in the second-level cache. A unit packs its columns of
// some items after another, and multiplies them by rows that are packed before. Threads that would
// go without share the lines of a unit, which are its blocks of rows for each element of the
// filter.
template <class Method>
class Sums {
 public:
  Sums(const Method& method, std::int64_t groups, const Weights& weights)
      : method_(method),
        packed_(method.packed()),
        weights_(weights),
        groups_(groups),
        row_blocks_(divide_up(packed_.rows, kTileBlock)),
        blocks_(columns_at_once(packed_.rows, packed_.columns, weights.taps) / kTileBlock) {
    const std::int64_t cached = units(), threads = omp_get_max_threads();
    while (units() < threads && blocks_ > 1) blocks_ = divide_up(blocks_, 2);
    shares_ = std::clamp<std::int64_t>(divide_up(threads, units()), 1, lines());
    right_items_ =
        std::clamp<std::int64_t>(kCachedItem / packed_.bytes(columns()), 1, method.items());
    left_items_ = cached == 1 ? right_items_ : rows_at_once(cached);
  }

  void run() {
    const std::int64_t items = method_.items(), most = std::min(left_items_, items);
    const Array left = empty({most * packed_.left_size + kTileSize}, Dtype::bfloat16);
    const auto terms = method_.terms(right_items_), last_terms = method_.terms(last_count());
    const PartsOfTerms parts(terms, lines()), last_parts(last_terms, lines());
    const bool keeps = most < items || shares_ > 1;
    if (keeps) kept_ = memory(units());
    const std::int64_t cost =
        blocks_ * lines() * parts.steps() * (most / right_items_) * kTileSize / 4 / shares_;
    for (std::int64_t begin = 0; begin < items; begin += most) {
      const std::int64_t end = std::min(items, begin + most);
      method_.pack_left(begin, end - begin, left.as<bfloat16>());
      parallel_for(units() * shares_, cost, [&](std::int64_t first, std::int64_t last) {
        const SingleThread alone;
        const Array own = keeps ? kept_ : memory(1);
        const Array right =
            empty({columns() / kTileEdge * right_items_ * packed_.panel_size + kTileSize},
                  Dtype::bfloat16);
        for (std::int64_t i = first; i < last; ++i) {
          const std::int64_t number = i / shares_, share = i % shares_;
          const Lines part{lines() * share / shares_, lines() * (share + 1) / shares_};
          const ColumnRange unit = this->unit(number);
          TileSums* const sums = sums_of(own, keeps ? number : 0);
          for (std::int64_t item = begin; item < end; item += right_items_) {
            const std::int64_t count = std::min(right_items_, items - item);
            method_.pack_right(item, count, unit, right.as<bfloat16>());
            const PartsOfTerms& used = count == right_items_ ? parts : last_parts;
            const bfloat16* const rows = left.as<bfloat16>() + (item - begin) * packed_.left_size;
            Fetching meanwhile;
            if (units() > 1) {  // the rows of the next items are not in a core's own caches
              const std::int64_t after = std::min(right_items_, end - item - count);
              const std::int64_t bytes = 2 * after * packed_.left_size;
              const std::int64_t blocks =
                  (part.end - part.begin) * divide_up(unit.count, kTileBlock);
              meanwhile.next = {rows + count * packed_.left_size, bytes, blocks * used.steps()};
            }
            multiply(unit, part, rows, right.as<bfloat16>(), count, used, item > 0, meanwhile,
                     sums);
          }
          if (end == items && shares_ == 1) write(unit, sums);
        }
      });
    }
    if (shares_ == 1) return;
    parallel_for(units(), unit_size() * kTileSize, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) write(unit(i), sums_of(kept_, i));
    });
  }

 private:
  // So many items' rows are packed at once that least memory passes: either those that stay in the
  // second-level cache, and sums are read and written for each of these, or as many as memory may
  // be taken for, which each unit reads.
  std::int64_t rows_at_once(std::int64_t units) const {
    constexpr std::int64_t kCachedRows = 5 << 17, kMost = 1 << 23;
    const std::int64_t items = method_.items(), bytes = 2 * packed_.left_size;
    const std::int64_t sums = 4 * units * unit_size() * kTileBlock * kTileBlock;
    const auto whole = [&](std::int64_t most) {
      return std::min(items,
                      right_items_ * std::max<std::int64_t>(1, most / (right_items_ * bytes)));
    };
    const auto sums_traffic = [&](std::int64_t at_once) {
      return at_once == items ? 0 : 2 * sums * divide_up(items, at_once);
    };
    const std::int64_t cached = whole(kCachedRows), most = whole(kMost);
    return sums_traffic(cached) < sums_traffic(most) + units * items * bytes ? cached : most;
  }

  struct Lines {
    std::int64_t begin, end;
  };
  std::int64_t lines() const { return row_blocks_ * weights_.taps; }
  std::int64_t sets() const { return divide_up(packed_.columns, columns()); }
  std::int64_t units() const { return groups_ * sets(); }
  std::int64_t columns() const { return std::min(blocks_ * kTileBlock, packed_.columns); }
  ColumnRange unit(std::int64_t i) const {
    const std::int64_t first = i % sets() * columns();
    return {i / sets(), first, std::min(columns(), packed_.columns - first)};
  }
  // In blocks; what is written of sums may read one more.
  std::int64_t unit_size() const { return lines() * blocks_ + weights_.taps; }
  Array memory(std::int64_t units) const {
    return empty({units * unit_size(), kTileBlock * kTileBlock}, Dtype::float32);
  }
  TileSums* sums_of(const Array& memory, std::int64_t unit) const {
    return reinterpret_cast<TileSums*>(memory.data()) + unit * unit_size();
  }
  std::int64_t last_count() const {
    const std::int64_t rest = method_.items() % right_items_;
    return rest == 0 ? right_items_ : rest;
  }

  void multiply(const ColumnRange& unit, const Lines& used, const bfloat16* left,
                const bfloat16* right, std::int64_t items, const PartsOfTerms& parts, bool is_added,
                Fetching& meanwhile, TileSums* sums) const {
    left += unit.group * packed_.left_group_step;
    const std::int64_t panel_step = items * packed_.panel_size;
    simd::run_on_tiles([&](auto, auto& tiles) __attribute__((always_inline)) {
      for (std::int64_t part = 0; part < parts.count(); ++part) {
        const bool adds = part > 0 || is_added;
        for (std::int64_t column = 0; column < unit.count; column += kTileBlock) {
          const std::int64_t columns = std::min(kTileBlock, unit.count - column);
          const bfloat16* const panel = right + column / kTileEdge * panel_step;
          TileSums* const blocks = sums + column / kTileBlock * lines();
          for (std::int64_t line = used.begin; line < used.end; ++line) {
            const std::int64_t row = line / weights_.taps * kTileBlock;
            const std::int64_t rows = std::min(kTileBlock, packed_.rows - row);
            const TileOperands operands{left + row * packed_.row_step, packed_.row_step, panel,
                                        panel_step};
            parts.visit(
                line % weights_.taps,
                part, [&](std::span<const TileTerm> terms) __attribute__((always_inline)) {
                  if (adds && terms.empty()) return;
                  sum_products(tiles, operands, terms, rows, columns, adds, blocks[line],
                               meanwhile);
                });
          }
        }
      }
    });
  }

  void write(const ColumnRange& unit, const TileSums* sums) const {
    if (weights_.by_rows) return write_rows(unit, sums);
    simd::dispatch<float>([&](auto target) __attribute__((always_inline)) {
      for (std::int64_t column = 0; column < unit.count; column += kTileBlock) {
        const std::int64_t first = unit.first + column;
        write_weights<decltype(target)>(sums->numbers, weights_.rows,
                                        std::min(kTileBlock, weights_.columns - first), weights_,
                                        weights_.at(unit.group, first, 0));
        sums += lines();
      }
    });
  }
  void write_rows(const ColumnRange& unit, const TileSums* sums) const {
    const std::int64_t last = std::min(weights_.columns, unit.first + unit.count);
    for (std::int64_t row = 0; row < weights_.rows; ++row) {
      float* to = weights_.data + row * weights_.columns + unit.first;
      float* const end = weights_.data + row * weights_.columns + last;
      for (const TileSums* block = sums; to < end; to += kTileBlock, block += row_blocks_) {
        std::copy_n(block->row(row), std::min(kTileBlock, end - to), to);
      }
    }
  }

  const Method& method_;
  const PackedOperands& packed_;
  const Weights weights_;
  const std::int64_t groups_, row_blocks_;
  std::int64_t blocks_;                    // of columns of a unit
  std::int64_t shares_;                    // of the lines of a unit
  std::int64_t right_items_, left_items_;  // of which columns, and rows, are packed at once
  Array kept_;                             // the sums of all units, while there are more items
};

template <class Method>
void run(const Method& method, const Geometry& geometry, const Array& weights,
         bool by_rows = false) {
  // Elements of the filter that are gathered are rows, before the channels.
  const std::int64_t inputs = geometry.source_channels, outputs = geometry.destination_channels;
  const auto taps = std::ssize(method.terms(0)), gathered = geometry.taps() / taps;
  const Array result = gathered > 1 ? empty({outputs, gathered, inputs}, Dtype::float32) : weights;
  Sums(method, geometry.groups, {result.as<float>(), outputs, gathered * inputs, taps, by_rows})
      .run();
  if (gathered > 1) {
    copy(transpose_view(result, {0, 2, 1}), reshape_view(weights, {outputs, inputs, gathered}));
  }
}

// Compares the shares of a block of tiles' depth that are not zeros, by samples and by pixels.
bool gains_by_samples(const Geometry& geometry) {
  const Phase& phase = geometry.phases[0];
  const Extents box = SourceBoxes(phase, 1, 1).extents(phase.count);
  const auto pixels = static_cast<double>(phase.count[1] * phase.count[2]);
  const double by_pixels =
      pixels / static_cast<double>(round_up(phase.count[1] * box[2], kTileDepth));
  const double by_samples = static_cast<double>(geometry.samples) /
                            static_cast<double>(round_up(geometry.samples, kTileDepth));
  // Then the samples of all pixels stay in the caches, at least as many as a tile is deep.
  const std::int64_t sample =
      geometry.groups * (product(geometry.source) * geometry.source_channels +
                         product(geometry.destination) * geometry.destination_channels);
  constexpr std::int64_t kCachedSample = 5 << 18;
  return kTileDepth * sample <= kCachedSample && by_samples > by_pixels;
}

template <class T>
void weight_grad(const Geometry& geometry, const Array& gy, const Array& x, const Array& weights) {
  const Images<T> images{source_image<T>(x, geometry.source, geometry.groups),
                         source_image<T>(gy, geometry.destination, geometry.groups),
                         geometry.samples};
  if (gains_by_gathering(geometry)) {
    return run(ByGatheredPixels<T>(geometry, images), geometry, weights);
  }
  if (gains_by_samples(geometry)) return run(BySamples<T>(geometry, images), geometry, weights);
  // The rows of a product of pixels are the fewer channels: rows are transposed to be packed.
  if (is_pointwise(geometry) && geometry.source_channels > geometry.destination_channels) {
    Geometry swapped = geometry;
    std::swap(swapped.source_channels, swapped.destination_channels);
    const Images<T> other{images.gy, images.x, images.samples};
    return run(ByPixels<T>(swapped, other), swapped, weights, true);
  }
  run(ByPixels<T>(geometry, images), geometry, weights);
}

}  // namespace

void weight_grad(const Problem& problem) {
  if (const std::int64_t merged = merged_groups(problem); merged > 1) {
    Shape shape = problem.W.shape();
    shape[1] *= merged;
    const Array gW = empty(shape, Dtype::float32);
    Window window = problem.window;
    window.groups /= merged;
    weight_grad({problem.pass, problem.x, gW, problem.y, window});
    return split_gradients(gW, problem.window.groups, merged, problem.W);
  }
  const Problem forward{Pass::forward, problem.x, problem.W, problem.y, problem.window};
  const Geometry geometry = geometry_of(forward);
  const Array x = pixel_rows(problem.x), gy = pixel_rows(problem.y);
  const Array& gW = problem.W;
  const bool is_float = gW.dtype() == Dtype::float32;
  const Array weights = is_float ? gW : empty(gW.shape(), Dtype::float32);
  if (x.dtype() == Dtype::float32) {
    weight_grad<float>(geometry, gy, x, weights);
  } else {
    weight_grad<bfloat16>(geometry, gy, x, weights);
  }
  if (!is_float) copy(weights, gW);
}

}  // namespace renga::convolution::tiles
