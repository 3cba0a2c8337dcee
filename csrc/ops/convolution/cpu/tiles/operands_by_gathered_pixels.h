// Operands of a weight gradient for images of few channels: the rows of the left operand are the
// elements of the filter and the channels together. The depth runs along the pixels of an item, a
// sample or a band of lines (or of planes, if there are several) of one.
#pragma once

#include "devices/parallel.h"
#include "devices/single_thread.h"
#include "ops/convolution/cpu/tiles/gathered_pixels.h"
#include "ops/convolution/cpu/tiles/packed_operands.h"
#include "ops/matmul/cpu/bfloat16_packing.h"

namespace renga::convolution::tiles {

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
    const std::int64_t columns = columns_at_once(packed_.rows, gy_channels_, 1);
    while (packed_.bytes(columns) > kCachedItem && count_[axis()] > 1) {
      count_[axis()] = divide_up(count_[axis()], 2);
      lay_out();
    }
  }

  const PackedOperands& packed() const { return packed_; }
  std::int64_t items() const { return images_.samples * bands(); }
  std::vector<std::vector<TileTerm>> terms(std::int64_t items) const {
    std::vector<TileTerm> terms;
    for (std::int64_t i = 0; i < items; ++i) {
      terms.push_back({i * packed_.left_size, i * packed_.panel_size, depth_ / kTileDepth});
    }
    return {terms};
  }

  // Items begin to begin + count.
  void pack_left(std::int64_t begin, std::int64_t count, bfloat16* to) const {
    parallel_for(count, 2 * packed_.left_size, [&](std::int64_t first, std::int64_t last) {
      const SingleThread alone;
      const Array memory = empty({gathered_.memory_size(count_)}, Dtype::bfloat16);
      const Array rows =
          empty({gathered_.rows_size(count_) + GatheredPixels::kSlack}, Dtype::bfloat16);
      for (std::int64_t i = first; i < last; ++i) {
        pack_x(begin + i, memory.as<bfloat16>(), rows.as<bfloat16>(), to + i * packed_.left_size);
      }
    });
  }
  void pack_right(std::int64_t begin, std::int64_t count, const ColumnRange& columns,
                  bfloat16* to) const {
    for (std::int64_t i = 0; i < count; ++i) {
      pack_gy(begin + i, columns, count * packed_.panel_size, to + i * packed_.panel_size);
    }
  }

 private:
  std::size_t axis() const { return all_[0] > 1 ? 0 : 1; }
  std::int64_t bands() const { return divide_up(all_[axis()], count_[axis()]); }
  void lay_out() {
    depth_ = round_up(product(count_), kTileDepth);
    const std::int64_t row_step = depth_ % 512 == 0 ? depth_ + kTileDepth : depth_;
    const std::int64_t rows = round_up(rows_, kTileEdge);
    packed_ = {rows, row_step, rows * row_step, 0, gy_channels_, depth_ * kTileEdge};
  }

  struct Band {
    std::int64_t sample;
    Extents begin, count;
  };
  Band band(std::int64_t item) const {
    Band band{item / bands(), {}, count_};
    band.begin[axis()] = item % bands() * count_[axis()];
    band.count[axis()] = std::min(count_[axis()], all_[axis()] - band.begin[axis()]);
    return band;
  }

  void pack_x(std::int64_t item, bfloat16* memory, bfloat16* rows, bfloat16* to) const {
    const auto [sample, begin, count] = band(item);
    const std::int64_t pixels = product(count);
    simd::dispatch<float>([&](auto target) __attribute__((always_inline)) {
      gathered_.template gather<decltype(target)>(
          images_.x, images_.x.data + sample * images_.x.sample_step(), begin, count, memory, rows);
    });
    pack_bfloat16(rows, {pixels, rows_, false, gathered_depth_}, to,
                  {.depth = pixels, .width = rows_, .panel = 0, .step = packed_.row_step});
    for (std::int64_t r = 0; r < packed_.rows; ++r) {
      const std::int64_t used = r < rows_ ? pixels : 0;
      clear_numbers(to + r * packed_.row_step + used, packed_.row_step - used);
    }
  }

  void pack_gy(std::int64_t item, const ColumnRange& columns, std::int64_t panel_step,
               bfloat16* to) const {
    const auto [sample, begin, count] = band(item);
    const SourceImage<T>& gy = images_.gy;
    // Bands are along the outermost axis, so that their pixels adjoin.
    const std::int64_t first = (begin[0] * all_[1] + begin[1]) * all_[2];
    pack_bfloat16(
        gy.data + sample * gy.sample_step() + first * gy.pixel_step + columns.first,
        {product(count), std::min(columns.count, gy.channels - columns.first), false,
         gy.pixel_step},
        to, {.depth = depth_, .width = columns.count, .panel = kTileEdge, .step = panel_step});
  }

  const Images<T>& images_;
  Extents count_;
  const Extents all_;
  const std::int64_t rows_, gathered_depth_, gy_channels_;
  const GatheredPixels gathered_;
  std::int64_t depth_ = 0;
  PackedOperands packed_{};
};

}  // namespace renga::convolution::tiles
