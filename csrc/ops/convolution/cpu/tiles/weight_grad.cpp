#include <algorithm>

#include "devices/parallel.h"
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

// Weights (group, column, row, tap), without the padding of what is packed.
struct Weights {
  float* data;
  std::int64_t columns, rows, taps;

  std::int64_t column_step() const { return rows * taps; }
  float* at(std::int64_t group, std::int64_t column, std::int64_t row) const {
    return data + (group * columns + column) * column_step() + row * taps;
  }
};

// Writes sums (block of rows, tap, row, column) of `rows` rows and `columns` columns as weights
// from `to` on, or adds them. Vectors may read beyond the last row, up to a block of rows.
template <class Target>
[[gnu::always_inline]] inline void write_weights(const float* sums, std::int64_t rows,
                                                 std::int64_t columns, const Weights& weights,
                                                 bool accumulate, float* to) {
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
          if (accumulate) square[k] += simd::load_floats<Target>(at);
          simd::store_floats<Target>(square[k], at);
          continue;
        }
        for (std::int64_t j = 0; j < count; ++j) {
          at[j] = accumulate ? at[j] + square[k][j] : square[k][j];
        }
      }
    }
  }
}

// So many blocks of rows of x are multiplied by a block of columns of gy after the other: they stay
// in the second-level cache, and so do their sums. Fewer where threads would go without.
std::int64_t row_blocks_at_once(std::int64_t blocks, std::int64_t bytes, std::int64_t taps,
                                std::int64_t others) {
  constexpr std::int64_t kCachedRows = 1 << 20, kSums = 32;
  const std::int64_t each = divide_up(blocks * others, omp_get_max_threads());
  const std::int64_t most =
      std::max<std::int64_t>(1, std::min({kSums / taps, kCachedRows / bytes, blocks, each}));
  return divide_up(blocks, divide_up(blocks, most));
}

// The product of what is packed, at most `items` items, for all elements of the filter, added to
// `weights` or written there.
void multiply(const PackedOperands& packed, std::int64_t items, const bfloat16* left,
              const bfloat16* right, std::span<const std::vector<TileTerm>> terms,
              std::int64_t groups, bool accumulate, const Weights& weights) {
  const std::int64_t row_blocks = divide_up(packed.rows, kTileBlock);
  const std::int64_t column_blocks = divide_up(packed.columns, kTileBlock);
  const auto taps = static_cast<std::int64_t>(terms.size());
  const PartsOfTerms parts(terms, row_blocks * taps);
  const std::int64_t row_bytes = 2 * items * packed.left_size / (groups * packed.rows);
  const std::int64_t at_once =
      row_blocks_at_once(row_blocks, kTileBlock * row_bytes, taps, groups * column_blocks);
  const std::int64_t sets = divide_up(row_blocks, at_once);
  const std::int64_t cost = at_once * taps * parts.steps() * kTileSize / 4;
  parallel_for(groups * sets * column_blocks, cost, [&](std::int64_t begin, std::int64_t end) {
    const Array memory = empty({(at_once + 1) * taps, kTileBlock * kTileBlock}, Dtype::float32);
    auto* const sums = reinterpret_cast<TileSums*>(memory.data());
    simd::run_on_tiles([&](auto target, auto& tiles) __attribute__((always_inline)) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t column = i % column_blocks * kTileBlock;
        const std::int64_t columns = std::min(kTileBlock, packed.columns - column);
        const std::int64_t first = i / column_blocks % sets * at_once * kTileBlock;
        const std::int64_t last = std::min(packed.rows, first + at_once * kTileBlock);
        const std::int64_t group = i / column_blocks / sets;
        const bfloat16* const left_group = left + group * packed.left_group_step;
        const bfloat16* const panel =
            right + group * packed.right_group_step + column / kTileEdge * packed.panel_step;
        for (std::int64_t part = 0; part < parts.count(); ++part) {
          TileSums* block = sums;
          for (std::int64_t row = first; row < last; row += kTileBlock) {
            const std::int64_t rows = std::min(kTileBlock, last - row);
            const TileOperands operands{left_group + row * packed.row_step, packed.row_step, panel,
                                        packed.panel_step};
            for (std::int64_t tap = 0; tap < taps; ++tap, ++block) {
              parts.visit(
                  tap, part, [&](std::span<const TileTerm> used) __attribute__((always_inline)) {
                    if (part > 0 && used.empty()) return;
                    sum_products(tiles, operands, used, rows, columns, *block, part > 0);
                  });
            }
          }
        }
        write_weights<decltype(target)>(sums->numbers, std::min(last, weights.rows) - first,
                                        std::min(columns, weights.columns - column), weights,
                                        accumulate, weights.at(group, column, first));
      }
    });
  });
}

template <class Method>
void run(const Method& method, const Geometry& geometry, std::int64_t packed_items,
         const Array& weights) {
  const PackedOperands& packed = method.packed();
  const Array left = empty({packed_items * packed.left_size + kTileSize}, Dtype::bfloat16);
  const Array right = empty({packed_items * packed.right_size + kTileSize}, Dtype::bfloat16);
  std::vector<std::vector<TileTerm>> terms = method.terms(1);
  // Elements of the filter that are gathered are rows, before the channels.
  const std::int64_t inputs = geometry.source_channels, outputs = geometry.destination_channels;
  const auto taps = static_cast<std::int64_t>(terms.size()), gathered = geometry.taps() / taps;
  const Array sums = gathered > 1 ? empty({outputs, gathered, inputs}, Dtype::float32) : weights;
  std::int64_t last_count = 0;
  for (std::int64_t begin = 0; begin < method.items(); begin += method.items_at_once()) {
    const std::int64_t count = std::min(method.items_at_once(), method.items() - begin);
    if (count != last_count) terms = method.terms(count);
    last_count = count;
    method.pack(begin, count, left.as<bfloat16>(), right.as<bfloat16>());
    multiply(packed, packed_items, left.as<bfloat16>(), right.as<bfloat16>(), terms,
             geometry.groups, begin > 0, {sums.as<float>(), outputs, gathered * inputs, taps});
  }
  if (gathered > 1) {
    copy(transpose_view(sums, {0, 2, 1}), reshape_view(weights, {outputs, inputs, gathered}));
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
  return 2 * kTileDepth * sample <= 2 * kCachedOperands && by_samples > by_pixels;
}

template <class T>
void weight_grad(const Geometry& geometry, const Array& gy, const Array& x, const Array& weights) {
  const Images<T> images{source_image<T>(x, geometry.source, geometry.groups),
                         source_image<T>(gy, geometry.destination, geometry.groups),
                         geometry.samples};
  if (gains_by_gathering(geometry)) {
    const ByGatheredPixels<T> by_pixels(geometry, images);
    return run(by_pixels, geometry, by_pixels.items_at_once(), weights);
  }
  // All samples together are one item of what is packed.
  if (gains_by_samples(geometry)) {
    return run(BySamples<T>(geometry, images), geometry, 1, weights);
  }
  const ByPixels<T> by_pixels(geometry, images);
  run(by_pixels, geometry, by_pixels.items_at_once(), weights);
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
