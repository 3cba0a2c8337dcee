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

// The product of what is packed, for all elements of the filter, added to `sums` (group, tap, row,
// column) or written there.
void multiply(const PackedOperands& packed, const bfloat16* left, const bfloat16* right,
              std::span<const std::vector<TileTerm>> terms, std::int64_t groups, bool accumulate,
              float* sums) {
  const std::int64_t row_blocks = divide_up(packed.rows, kTileBlock);
  const std::int64_t column_blocks = divide_up(packed.columns, kTileBlock);
  const auto taps = static_cast<std::int64_t>(terms.size());
  const std::int64_t each = row_blocks * taps;  // blocks of sums of the same columns
  const PartsOfTerms parts(terms, each);
  // So many blocks of sums are computed part by part together. Whole ones go by rows instead.
  constexpr std::int64_t kAtOnce = 32;
  const bool by_parts = parts.count() > 1;
  const std::int64_t cost = parts.steps() * kTileSize / 4;
  parallel_for(groups * column_blocks * each, cost, [&](std::int64_t begin, std::int64_t end) {
    const Array memory =
        empty({std::min(kAtOnce, end - begin), kTileBlock * kTileBlock}, Dtype::float32);
    auto* const blocks = reinterpret_cast<TileSums*>(memory.data());
    simd::run_on_tiles([&](auto target, auto& tiles) __attribute__((always_inline)) {
      for (std::int64_t first = begin; first < end;) {
        const std::int64_t last =
            by_parts ? std::min({end, first + kAtOnce, (first / each + 1) * each}) : first + 1;
        const std::int64_t column = first / (by_parts ? each : taps) % column_blocks * kTileBlock;
        const std::int64_t group = first / each / column_blocks;
        const std::int64_t columns = std::min(kTileBlock, packed.columns - column);
        const bfloat16* const left_group = left + group * packed.left_group_step;
        const bfloat16* const panel =
            right + group * packed.right_group_step + column / kTileEdge * packed.panel_step;
        for (std::int64_t part = 0; part < parts.count(); ++part) {
          std::int64_t tap = first % taps;
          std::int64_t row =
              first / taps / (by_parts ? 1 : column_blocks) % row_blocks * kTileBlock;
          for (std::int64_t i = first; i < last; ++i) {
            const std::int64_t rows = std::min(kTileBlock, packed.rows - row);
            const TileOperands operands{left_group + row * packed.row_step, packed.row_step, panel,
                                        packed.panel_step};
            TileSums& block = blocks[i - first];
            parts.visit(
                tap, part, [&](std::span<const TileTerm> used) __attribute__((always_inline)) {
                  if (part > 0 && used.empty()) return;
                  sum_products(tiles, operands, used, rows, columns, block, part > 0);
                });
            if (part + 1 == parts.count()) {
              float* const to =
                  sums + ((group * taps + tap) * packed.rows + row) * packed.columns + column;
              for (std::int64_t k = 0; k < rows; ++k) {
                write_sums<decltype(target)>(block.row(k), columns,
                                             static_cast<const float*>(nullptr), accumulate, false,
                                             to + k * packed.columns);
              }
            }
            if (++tap == taps) tap = 0, row += kTileBlock;
          }
        }
        first = last;
      }
    });
  });
}

// Sums (tap, row, column) of a group as weights (column, row, tap).
void write_weights(const float* sums, std::int64_t padded_rows, std::int64_t padded_columns,
                   std::int64_t rows, std::int64_t columns, std::int64_t taps, float* weights) {
  constexpr std::int64_t edge = 16;
  const std::int64_t plane = padded_rows * padded_columns;
  parallel_for(divide_up(columns, edge), edge * rows * taps,
               [&](std::int64_t begin, std::int64_t end) {
                 simd::dispatch_for<float>([&](auto target) __attribute__((always_inline)) {
                   using Target = decltype(target);
                   constexpr std::int64_t width = Target::width;
                   for (std::int64_t block = begin * edge; block < std::min(columns, end * edge);
                        block += width) {
                     const std::int64_t count = std::min(width, columns - block);
                     for (std::int64_t row = 0; row < rows; ++row) {
                       for (std::int64_t t = 0; t < taps; t += width) {
                         const std::int64_t length = std::min(width, taps - t);
                         simd::Floats<Target> square[width];
                         const float* from = sums + t * plane + row * padded_columns + block;
#pragma GCC unroll 16
                         for (std::int64_t k = 0; k < width; ++k) {
                           square[k] = simd::load_floats<Target>(from);
                           if (k + 1 < length) from += plane;
                         }
                         simd::transpose<Target>(square);
                         float* const to = weights + (block * rows + row) * taps + t;
                         // Vectors may reach beyond their numbers into those of the same column
                         // that follow.
                         if ((rows - row) * taps - t >= width) {
#pragma GCC unroll 16
                           for (std::int64_t k = 0; k < width; ++k) {
                             if (k < count)
                               simd::store_floats<Target>(square[k], to + k * rows * taps);
                           }
                         } else {
                           for (std::int64_t k = 0; k < count; ++k) {
                             std::memcpy(to + k * rows * taps, &square[k],
                                         static_cast<std::size_t>(length) * sizeof(float));
                           }
                         }
                       }
                     }
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
  const std::int64_t group_sums =
      static_cast<std::int64_t>(terms.size()) * packed.rows * packed.columns;
  const Array sums = empty({geometry.groups * group_sums}, Dtype::float32);
  std::int64_t last_count = 0;
  for (std::int64_t begin = 0; begin < method.items(); begin += method.items_at_once()) {
    const std::int64_t count = std::min(method.items_at_once(), method.items() - begin);
    if (count != last_count) terms = method.terms(count);
    last_count = count;
    method.pack(begin, count, left.as<bfloat16>(), right.as<bfloat16>());
    multiply(packed, left.as<bfloat16>(), right.as<bfloat16>(), terms, geometry.groups, begin > 0,
             sums.as<float>());
  }
  const std::int64_t taps = geometry.taps(), groups = geometry.groups;
  const std::int64_t inputs = geometry.source_channels, outputs = geometry.destination_channels;
  if (taps == 1) {
    const Array all = reshape_view(sums, {groups, packed.rows, packed.columns});
    const Array used = slice_view(slice_view(all, 1, 0, inputs), 2, 0, outputs);
    return copy(transpose_view(used, {0, 2, 1}), reshape_view(weights, {groups, outputs, inputs}));
  }
  // Rows of elements of the filter that are gathered follow each other without padding.
  const std::int64_t rows = terms.size() == 1 ? inputs : packed.rows;
  for (std::int64_t g = 0; g < groups; ++g) {
    write_weights(sums.as<float>() + g * group_sums, rows, packed.columns, inputs, outputs, taps,
                  weights.as<float>() + g * outputs * inputs * taps);
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
