#include <algorithm>

#include "devices/parallel.h"
#include "devices/single_thread.h"
#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/tiles/gathered_pixels.h"
#include "ops/convolution/cpu/tiles/merged_groups.h"
#include "ops/convolution/cpu/tiles/tile_convolution.h"
#include "ops/matmul/cpu/bfloat16_packing.h"
#include "ops/matmul/cpu/tile_sums.h"
#include "simd/transpose.h"

namespace renga {
namespace tile_convolution {
namespace {

// A weight gradient is, for each element of the filter, the product of x, transposed, and gy over
// all pixels: x's channels are the rows of the left operand, gy's the columns of the right one. x
// lies in memory by channels, so that an element of the filter is a shift along the depth.

// The bytes of both operands that stay in the second-level cache.
constexpr std::int64_t kCachedBytes = 5 << 18;

// Where the operands of some samples are, and the terms of each element of the filter. Offsets are
// in numbers.
struct PackedOperands {
  std::int64_t rows;                               // x's channels of a group, padded
  std::int64_t row_step;                           // from channel to channel of x
  std::int64_t columns;                            // gy's channels of a group, padded
  std::int64_t panel_step;                         // from panel to panel of gy
  std::int64_t left_size, right_size;              // of an item, for all groups
  std::int64_t left_group_step, right_group_step;  // within an item
};

template <class T>
struct Images {
  SourceImage<T> x, gy;
  std::int64_t samples;
};

// The product of what is packed, for all elements of the filter, added to `sums` (group, tap, row,
// column) or written there.
void multiply(const PackedOperands& packed, const bfloat16* left, const bfloat16* right,
              std::span<const std::vector<TileTerm>> terms, std::int64_t groups, bool accumulate,
              float* sums) {
  const std::int64_t row_blocks = divide_up(packed.rows, kTileBlock);
  const std::int64_t column_blocks = divide_up(packed.columns, kTileBlock);
  const auto taps = static_cast<std::int64_t>(terms.size());
  std::int64_t steps = 0;
  for (const auto& tap : terms) {
    for (const TileTerm& term : tap) steps += term.steps;
  }
  const std::int64_t blocks = groups * row_blocks * column_blocks * taps;
  const std::int64_t cost = steps / taps * kTileSize / 4;
  parallel_for(blocks, cost, [&](std::int64_t begin, std::int64_t end) {
    simd::run_on_tiles([&](auto target, auto& tiles) __attribute__((always_inline)) {
      TileSums block;
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t tap = i % taps, column = i / taps % column_blocks * kTileBlock;
        const std::int64_t row = i / taps / column_blocks % row_blocks * kTileBlock;
        const std::int64_t group = i / taps / column_blocks / row_blocks;
        const std::int64_t rows = std::min(kTileBlock, packed.rows - row);
        const std::int64_t columns = std::min(kTileBlock, packed.columns - column);
        const TileOperands operands{
            left + group * packed.left_group_step + row * packed.row_step, packed.row_step,
            right + group * packed.right_group_step + column / kTileEdge * packed.panel_step,
            packed.panel_step};
        sum_products(tiles, operands, terms[static_cast<std::size_t>(tap)], rows, columns, block);
        float* const to =
            sums + ((group * taps + tap) * packed.rows + row) * packed.columns + column;
        for (std::int64_t k = 0; k < rows; ++k) {
          write_sums<decltype(target)>(block.row(k), columns, static_cast<const float*>(nullptr),
                                       accumulate, false, to + k * packed.columns);
        }
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
                 simd::dispatch<float>([&](auto target) __attribute__((always_inline)) {
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

// The depth runs along the pixels of an item: a sample, or a band of lines (or of planes, if there
// are several) of one. What x's pixels an element of the filter meets is as in the forward pass.
template <class T>
class ByPixels {
 public:
  ByPixels(const Geometry& geometry, const Images<T>& images)
      : geometry_(geometry),
        images_(images),
        phase_(geometry.phases[0]),
        x_channels_(round_up(geometry.source_channels, kTileEdge)),
        gy_channels_(round_up(geometry.destination_channels, kTileEdge)),
        boxes_(phase_, geometry.groups, geometry.source_channels),
        count_(phase_.count) {
    lay_out();
    while (item_bytes() > kCachedBytes && band() > 1) {
      count_[band_axis()] = divide_up(band(), 2);
      lay_out();
    }
  }

  const PackedOperands& packed() const { return packed_; }
  std::int64_t items() const { return geometry_.samples * bands(); }
  std::int64_t items_at_once() const {
    return std::clamp<std::int64_t>(kCachedBytes / item_bytes(), 1, items());
  }

  // For so many items that are packed one after another.
  std::vector<std::vector<TileTerm>> terms(std::int64_t items) const {
    std::vector<std::vector<TileTerm>> terms(static_cast<std::size_t>(geometry_.taps()));
    for (std::size_t t = 0; t < phase_.taps.size(); ++t) {
      for (std::int64_t i = 0; i < items; ++i) {
        for (std::int64_t z = 0; z < count_[0]; ++z) {
          terms[static_cast<std::size_t>(phase_.taps[t].index)].push_back(
              {i * packed_.left_size + shift(t) + z * box_[1] * box_[2],
               i * packed_.right_size + z * plane_ * kTileEdge, plane_ / kTileDepth});
        }
      }
    }
    return terms;
  }

  // Items begin to begin + count, on all threads.
  void pack(std::int64_t begin, std::int64_t count, bfloat16* left, bfloat16* right) const {
    const std::int64_t box_numbers = boxes_.size(count_);
    const std::int64_t gy_numbers = count_[0] * plane_ * images_.gy.pixel_size();
    parallel_for(count, packed_.left_size + packed_.right_size,
                 [&](std::int64_t first, std::int64_t last) {
                   const SingleThread alone;
                   const Array memory = empty({std::max(box_numbers, gy_numbers)}, Dtype::bfloat16);
                   for (std::int64_t i = first; i < last; ++i) {
                     const std::int64_t sample = (begin + i) / bands();
                     Extents at{};
                     at[band_axis()] = (begin + i) % bands() * band();
                     pack_x(sample, at, memory.as<bfloat16>(), left + i * packed_.left_size);
                     pack_gy(sample, at, memory.as<bfloat16>(), right + i * packed_.right_size);
                   }
                 });
  }

 private:
  std::size_t band_axis() const { return phase_.count[0] > 1 ? 0 : 1; }
  std::int64_t band() const { return count_[band_axis()]; }
  std::int64_t bands() const { return divide_up(phase_.count[band_axis()], band()); }
  std::int64_t item_bytes() const { return 2 * (packed_.left_size + packed_.right_size); }

  // Destination pixels are counted with the width of a box.
  void lay_out() {
    box_ = boxes_.extents(count_);
    plane_ = round_up(count_[1] * box_[2], kTileDepth);
    row_ = pixels();
    for (std::size_t t = 0; t < phase_.taps.size(); ++t) {
      row_ = std::max(row_, shift(t) + (count_[0] - 1) * box_[1] * box_[2] + plane_);
    }
    row_ = round_up(row_, kTileDepth);
    if (row_ % 512 == 0) row_ += kTileDepth;
    const std::int64_t depth = count_[0] * plane_, groups = geometry_.groups;
    packed_ = {x_channels_,
               row_,
               gy_channels_,
               depth * kTileEdge,
               groups * x_channels_ * row_,
               groups * gy_channels_ * depth,
               x_channels_ * row_,
               gy_channels_ * depth};
  }

  // Of all boxes.
  std::int64_t pixels() const { return boxes_.size(count_) / boxes_.pixel_size(); }
  std::int64_t shift(std::size_t tap) const {
    return boxes_.tap_offset(tap, count_) / boxes_.pixel_size();
  }
  // Whether the box is the image, or lines of it.
  bool reads_whole_lines() const {
    return phase_.taps.size() == 1 && phase_.taps[0].source == Extents{} &&
           phase_.source_step == Extents{1, 1, 1} && box_[2] == geometry_.source[2] &&
           phase_.count[1] == geometry_.source[1] && phase_.count[0] == 1 &&
           phase_.count[1] % count_[1] == 0;
  }

  void pack_x(std::int64_t sample, const Extents& at, bfloat16* memory, bfloat16* to) const {
    const T* const image = images_.x.data + sample * images_.x.sample_size();
    if (reads_whole_lines()) {
      return pack_pixels(image + at[1] * box_[2] * images_.x.pixel_size(), to);
    }
    simd::dispatch<float>([&](auto target) __attribute__((always_inline)) {
      boxes_.template fill<decltype(target)>(images_.x, image, at, count_, memory);
    });
    pack_pixels(memory, to);
  }

  template <class Number>
  void pack_pixels(const Number* from, bfloat16* to) const {
    const std::int64_t channels = geometry_.source_channels;
    for (std::int64_t g = 0; g < geometry_.groups; ++g) {
      bfloat16* const rows = to + g * packed_.left_group_step;
      pack_bfloat16(from + g * channels, {pixels(), channels, false, boxes_.pixel_size()}, rows,
                    {.depth = pixels(), .width = channels, .panel = 0, .step = row_});
      for (std::int64_t c = 0; c < x_channels_; ++c) {
        const std::int64_t used = c < channels ? pixels() : 0;
        clear_numbers(rows + c * row_ + used, row_ - used);
      }
    }
  }

  // Positions that belong to no destination pixel are zeros.
  void pack_gy(std::int64_t sample, const Extents& at, bfloat16* memory, bfloat16* to) const {
    const std::int64_t pixel = images_.gy.pixel_size(), numbers = phase_.count[2] * pixel;
    const T* const image = images_.gy.data + sample * images_.gy.sample_size();
    const auto line_at = [&](std::int64_t z, std::int64_t y) {
      return image + ((at[0] + z) * phase_.count[1] + at[1] + y) * numbers;
    };
    const std::int64_t planes = std::min(count_[0], phase_.count[0] - at[0]);
    const std::int64_t lines = std::min(count_[1], phase_.count[1] - at[1]);
    const bool is_dense = box_[2] == phase_.count[2] && phase_.count[0] == 1;
    if (is_dense && lines == count_[1]) {
      return pack_panels(line_at(0, 0), lines * phase_.count[2], to);
    }
    simd::dispatch<float>([&](auto target) __attribute__((always_inline)) {
      for (std::int64_t z = 0; z < count_[0]; ++z) {
        bfloat16* const plane = memory + z * plane_ * pixel;
        const std::int64_t filled = z < planes ? lines : 0;
        for (std::int64_t y = 0; y < filled; ++y) {
          bfloat16* const line = plane + y * box_[2] * pixel;
          copy_numbers<decltype(target)>(line_at(z, y), line, numbers);
          clear_numbers(line + numbers, (box_[2] - phase_.count[2]) * pixel);
        }
        const std::int64_t used = filled * box_[2];
        clear_numbers(plane + used * pixel, (plane_ - used) * pixel);
      }
    });
    pack_panels(memory, count_[0] * plane_, to);
  }

  template <class Number>
  void pack_panels(const Number* from, std::int64_t depth, bfloat16* to) const {
    for (std::int64_t g = 0; g < geometry_.groups; ++g) {
      pack_bfloat16(from + g * geometry_.destination_channels,
                    {depth, geometry_.destination_channels, false, images_.gy.pixel_size()},
                    to + g * packed_.right_group_step,
                    {.depth = round_up(depth, kTileDepth),
                     .width = gy_channels_,
                     .panel = kTileEdge,
                     .step = packed_.panel_step});
    }
  }

  const Geometry& geometry_;
  const Images<T>& images_;
  const Phase& phase_;
  const std::int64_t x_channels_, gy_channels_;
  const SourceBoxes boxes_;
  Extents count_, box_{};  // of an item
  std::int64_t plane_ = 0, row_ = 0;
  PackedOperands packed_{};
};

// Images of few channels: the rows of the left operand are the elements of the filter and the
// channels together, and the depth runs along the pixels of an item, as above.
template <class T>
class ByGatheredPixels {
 public:
  ByGatheredPixels(const Geometry& geometry, const Images<T>& images)
      : images_(images),
        count_(geometry.phases[0].count),
        all_(count_),
        rows_(geometry.taps() * geometry.source_channels),
        gathered_depth_(round_up(rows_, kTileDepth)),
        gy_channels_(round_up(geometry.destination_channels, kTileEdge)),
        gathered_(geometry.phases[0], geometry.source_channels, gathered_depth_) {
    lay_out();
    while (item_bytes() > kCachedBytes && count_[axis()] > 1) {
      count_[axis()] = divide_up(count_[axis()], 2);
      lay_out();
    }
  }

  const PackedOperands& packed() const { return packed_; }
  std::int64_t items() const { return images_.samples * bands(); }
  std::int64_t items_at_once() const {
    return std::clamp<std::int64_t>(kCachedBytes / item_bytes(), 1, items());
  }
  std::vector<std::vector<TileTerm>> terms(std::int64_t items) const {
    std::vector<TileTerm> terms;
    for (std::int64_t i = 0; i < items; ++i) {
      terms.push_back({i * packed_.left_size, i * packed_.right_size, depth_ / kTileDepth});
    }
    return {terms};
  }

  void pack(std::int64_t begin, std::int64_t count, bfloat16* left, bfloat16* right) const {
    parallel_for(
        count, packed_.left_size + packed_.right_size, [&](std::int64_t first, std::int64_t last) {
          const SingleThread alone;
          const Array memory = empty({gathered_.memory_size(count_)}, Dtype::bfloat16);
          const Array rows =
              empty({gathered_.rows_size(count_) + GatheredPixels::kSlack}, Dtype::bfloat16);
          for (std::int64_t i = first; i < last; ++i) {
            pack_item(begin + i, memory.as<bfloat16>(), rows.as<bfloat16>(),
                      left + i * packed_.left_size, right + i * packed_.right_size);
          }
        });
  }

 private:
  std::size_t axis() const { return all_[0] > 1 ? 0 : 1; }
  std::int64_t bands() const { return divide_up(all_[axis()], count_[axis()]); }
  std::int64_t item_bytes() const {
    return 2 * (packed_.left_size + packed_.right_size + gathered_.rows_size(count_));
  }

  void lay_out() {
    depth_ = round_up(product(count_), kTileDepth);
    const std::int64_t row_step = depth_ % 512 == 0 ? depth_ + kTileDepth : depth_;
    const std::int64_t rows = round_up(rows_, kTileEdge);
    packed_ = {
        rows, row_step, gy_channels_, depth_ * kTileEdge, rows * row_step, gy_channels_ * depth_,
        0,    0};
  }

  void pack_item(std::int64_t item, bfloat16* memory, bfloat16* rows, bfloat16* left,
                 bfloat16* right) const {
    const std::int64_t sample = item / bands();
    Extents begin{}, count = count_;
    begin[axis()] = item % bands() * count_[axis()];
    count[axis()] = std::min(count_[axis()], all_[axis()] - begin[axis()]);
    const std::int64_t pixels = product(count);
    simd::dispatch<float>([&](auto target) __attribute__((always_inline)) {
      gathered_.template gather<decltype(target)>(
          images_.x, images_.x.data + sample * images_.x.sample_size(), begin, count, memory, rows);
    });
    pack_bfloat16(rows, {pixels, rows_, false, gathered_depth_}, left,
                  {.depth = pixels, .width = rows_, .panel = 0, .step = packed_.row_step});
    for (std::int64_t r = 0; r < packed_.rows; ++r) {
      const std::int64_t used = r < rows_ ? pixels : 0;
      clear_numbers(left + r * packed_.row_step + used, packed_.row_step - used);
    }
    // Bands are along the outermost axis, so that their pixels adjoin.
    const std::int64_t channels = images_.gy.channels;
    const std::int64_t first = (begin[0] * all_[1] + begin[1]) * all_[2];
    const T* const gy = images_.gy.data + sample * images_.gy.sample_size() + first * channels;
    pack_bfloat16(
        gy, {pixels, channels, false, channels}, right,
        {.depth = depth_, .width = gy_channels_, .panel = kTileEdge, .step = packed_.panel_step});
  }

  const Images<T>& images_;
  Extents count_;
  const Extents all_;
  const std::int64_t rows_, gathered_depth_, gy_channels_;
  const GatheredPixels gathered_;
  std::int64_t depth_ = 0;
  PackedOperands packed_{};
};

// Small images: for each pixel, the depth runs along the samples, so that there are no zeros
// around the image.
template <class T>
class BySamples {
 public:
  BySamples(const Geometry& geometry, const Images<T>& images)
      : geometry_(geometry),
        images_(images),
        x_channels_(round_up(geometry.source_channels, kTileEdge)),
        gy_channels_(round_up(geometry.destination_channels, kTileEdge)) {
    set_samples(items_at_once());
  }

  // Items are samples.
  std::int64_t items() const { return geometry_.samples; }
  std::int64_t items_at_once() const {
    const std::int64_t numbers = geometry_.groups * (product(geometry_.source) * x_channels_ +
                                                     product(geometry_.destination) * gy_channels_);
    const std::int64_t most = kCachedBytes / (2 * numbers) / kTileDepth * kTileDepth;
    return std::clamp<std::int64_t>(most, kTileDepth, round_up(geometry_.samples, kTileDepth));
  }
  const PackedOperands& packed() const { return packed_; }

  std::vector<std::vector<TileTerm>> terms(std::int64_t samples) const {
    std::vector<std::vector<TileTerm>> terms(static_cast<std::size_t>(geometry_.taps()));
    const Phase& phase = geometry_.phases[0];
    for (const Tap& tap : phase.taps) {
      auto& added = terms[static_cast<std::size_t>(tap.index)];
      for (std::int64_t i = 0; i < product(phase.count); ++i) {
        const Extents place{i / phase.count[2] / phase.count[1],
                            i / phase.count[2] % phase.count[1], i % phase.count[2]};
        std::int64_t at = 0;
        bool is_inside = true;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const std::int64_t source = tap.source[axis] + place[axis] * phase.source_step[axis];
          is_inside = is_inside && source >= 0 && source < geometry_.source[axis];
          at = at * geometry_.source[axis] + source;
        }
        if (!is_inside) continue;
        added.push_back({at * geometry_.groups * x_channels_ * depth_,
                         i * geometry_.groups * gy_channels_ * depth_,
                         divide_up(samples, kTileDepth)});
      }
    }
    return terms;
  }

  void pack(std::int64_t begin, std::int64_t count, bfloat16* left, bfloat16* right) const {
    const std::int64_t pixels = product(geometry_.source);
    const std::int64_t gy_pixels = product(geometry_.destination);
    const T* const x = images_.x.data + begin * images_.x.sample_size();
    const T* const gy = images_.gy.data + begin * images_.gy.sample_size();
    const std::int64_t cost = (x_channels_ + gy_channels_) * geometry_.groups * depth_ / 8;
    parallel_for(pixels + gy_pixels, cost, [&](std::int64_t first, std::int64_t last) {
      const SingleThread alone;
      for (std::int64_t i = first; i < last; ++i) {
        for (std::int64_t g = 0; g < geometry_.groups; ++g) {
          if (i < pixels) {
            pack_x(x + i * images_.x.pixel_size() + g * images_.x.channels, count,
                   left + (i * geometry_.groups + g) * x_channels_ * depth_);
          } else {
            const std::int64_t k = i - pixels;
            pack_gy(gy + k * images_.gy.pixel_size() + g * images_.gy.channels, count,
                    right + (k * geometry_.groups + g) * gy_channels_ * depth_);
          }
        }
      }
    });
  }

 private:
  void set_samples(std::int64_t samples) {
    depth_ = round_up(samples, kTileDepth);
    packed_ = {x_channels_,
               depth_,
               gy_channels_,
               depth_ * kTileEdge,
               product(geometry_.source) * geometry_.groups * x_channels_ * depth_,
               product(geometry_.destination) * geometry_.groups * gy_channels_ * depth_,
               x_channels_ * depth_,
               gy_channels_ * depth_};
  }

  void pack_x(const T* from, std::int64_t count, bfloat16* to) const {
    pack_bfloat16(from, {count, geometry_.source_channels, false, images_.x.sample_size()}, to,
                  {.depth = count, .width = geometry_.source_channels, .panel = 0, .step = depth_});
    for (std::int64_t c = 0; c < x_channels_; ++c) {
      const std::int64_t used = c < geometry_.source_channels ? count : 0;
      clear_numbers(to + c * depth_ + used, depth_ - used);
    }
  }
  void pack_gy(const T* from, std::int64_t count, bfloat16* to) const {
    pack_bfloat16(from, {count, geometry_.destination_channels, false, images_.gy.sample_size()},
                  to,
                  {.depth = round_up(count, kTileDepth),
                   .width = gy_channels_,
                   .panel = kTileEdge,
                   .step = packed_.panel_step});
  }

  const Geometry& geometry_;
  const Images<T>& images_;
  const std::int64_t x_channels_, gy_channels_;
  std::int64_t depth_ = 0;
  PackedOperands packed_{};
};

template <class Method>
void run(const Method& method, const Geometry& geometry, std::int64_t packed_items,
         float* weights) {
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
  const std::int64_t taps = geometry.taps();
  const std::int64_t group_weights =
      geometry.destination_channels * geometry.source_channels * taps;
  // Rows of elements of the filter that are gathered follow each other without padding.
  const std::int64_t rows = terms.size() == 1 ? geometry.source_channels : packed.rows;
  for (std::int64_t g = 0; g < geometry.groups; ++g) {
    write_weights(sums.as<float>() + g * group_sums, rows, packed.columns, geometry.source_channels,
                  geometry.destination_channels, taps, weights + g * group_weights);
  }
}

// Of a block of tiles' depth, the share that is not zeros.
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
  return 2 * kTileDepth * sample <= 2 * kCachedBytes && by_samples > by_pixels;
}

template <class T>
void weight_grad(const Geometry& geometry, const Array& gy, const Array& x, float* weights) {
  const Images<T> images{
      {x.as<T>(), geometry.source, geometry.groups, geometry.source_channels},
      {gy.as<T>(), geometry.destination, geometry.groups, geometry.destination_channels},
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
}  // namespace tile_convolution

void tile_weight_grad(const Problem& problem) {
  using namespace tile_convolution;
  if (const std::int64_t merged = merged_groups(problem); merged > 1) {
    Shape shape = problem.W.shape();
    shape[1] *= merged;
    const Array gW = empty(shape, Dtype::float32);
    Window window = problem.window;
    window.groups /= merged;
    tile_weight_grad({problem.pass, problem.x, gW, problem.y, window});
    return split_gradients(gW, problem.window.groups, merged, problem.W);
  }
  const Problem forward{Pass::forward, problem.x, problem.W, problem.y, problem.window};
  const Geometry geometry = geometry_of(forward);
  const Array x = dense_channels_last(problem.x), gy = dense_channels_last(problem.y);
  const Array& gW = problem.W;
  const bool is_float = gW.dtype() == Dtype::float32;
  const Array weights = is_float ? gW : empty(gW.shape(), Dtype::float32);
  if (x.dtype() == Dtype::float32) {
    weight_grad<float>(geometry, gy, x, weights.as<float>());
  } else {
    weight_grad<bfloat16>(geometry, gy, x, weights.as<float>());
  }
  if (!is_float) copy(weights, gW);
}

}  // namespace renga
