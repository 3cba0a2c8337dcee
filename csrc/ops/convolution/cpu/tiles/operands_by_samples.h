// Operands of a weight gradient for small images: for each pixel, the depth runs along the samples,
// so that there are no zeros around the image. Items are as many samples as a tile is deep.
#pragma once

#include "devices/parallel.h"
#include "devices/single_thread.h"
#include "ops/convolution/cpu/tiles/packed_operands.h"
#include "ops/matmul/cpu/bfloat16_packing.h"

namespace renga::convolution::tiles {

template <class T>
class BySamples {
 public:
  BySamples(const Geometry& geometry, const Images<T>& images)
      : geometry_(geometry),
        images_(images),
        x_channels_(round_up(geometry.source_channels, kTileEdge)),
        gy_channels_(round_up(geometry.destination_channels, kTileEdge)) {
    const std::int64_t left = x_channels_ * kTileDepth;
    packed_ = {x_channels_, kTileDepth,   product(geometry.source) * geometry.groups * left,
               left,        gy_channels_, product(geometry.destination) * kTileSize};
  }

  const PackedOperands& packed() const { return packed_; }
  std::int64_t items() const { return divide_up(geometry_.samples, kTileDepth); }

  std::vector<std::vector<TileTerm>> terms(std::int64_t items) const {
    std::vector<std::vector<TileTerm>> terms(static_cast<std::size_t>(geometry_.taps()));
    const Phase& phase = geometry_.phases[0];
    for (const Tap& tap : phase.taps) {
      auto& added = terms[static_cast<std::size_t>(tap.index)];
      for (std::int64_t item = 0; item < items; ++item) {
        for (std::int64_t i = 0; i < product(phase.count); ++i) {
          const auto at = geometry_.source_pixel(phase, tap, place_of(phase, i));
          if (!at) continue;
          added.push_back(
              {item * packed_.left_size + *at * geometry_.groups * packed_.left_group_step,
               item * packed_.panel_size + i * kTileSize, 1});
        }
      }
    }
    return terms;
  }

  // Items begin to begin + count.
  void pack_left(std::int64_t begin, std::int64_t count, bfloat16* to) const {
    const SourceImage<T>& x = images_.x;
    const std::int64_t pixels = product(geometry_.source);
    parallel_for(count * pixels, x.pixel_size() * kTileDepth / 4,
                 [&](std::int64_t first, std::int64_t last) {
                   const SingleThread alone;
                   for (std::int64_t i = first; i < last; ++i) {
                     const std::int64_t item = begin + i / pixels, pixel = i % pixels;
                     const T* const from =
                         x.data + item * kTileDepth * x.sample_step() + pixel * x.pixel_step;
                     for (std::int64_t g = 0; g < geometry_.groups; ++g) {
                       pack_x(from + g * x.channels, samples(item),
                              to + (i * geometry_.groups + g) * packed_.left_group_step);
                     }
                   }
                 });
  }
  void pack_right(std::int64_t begin, std::int64_t count, const ColumnRange& columns,
                  bfloat16* to) const {
    const SourceImage<T>& gy = images_.gy;
    const std::int64_t pixels = product(geometry_.destination);
    const std::int64_t channels = std::min(columns.count, gy.channels - columns.first);
    for (std::int64_t i = 0; i < count * pixels; ++i) {
      const std::int64_t item = begin + i / pixels;
      const T* const from = gy.data + item * kTileDepth * gy.sample_step() +
                            i % pixels * gy.pixel_step + columns.group * gy.channels +
                            columns.first;
      pack_bfloat16(from, {samples(item), channels, false, gy.sample_step()}, to + i * kTileSize,
                    {.depth = kTileDepth,
                     .width = columns.count,
                     .panel = kTileEdge,
                     .step = count * packed_.panel_size});
    }
  }

 private:
  std::int64_t samples(std::int64_t item) const {
    return std::min(kTileDepth, geometry_.samples - item * kTileDepth);
  }

  void pack_x(const T* from, std::int64_t count, bfloat16* to) const {
    pack_bfloat16(
        from, {count, geometry_.source_channels, false, images_.x.sample_step()}, to,
        {.depth = count, .width = geometry_.source_channels, .panel = 0, .step = kTileDepth});
    for (std::int64_t c = 0; c < x_channels_; ++c) {
      const std::int64_t used = c < geometry_.source_channels ? count : 0;
      clear_numbers(to + c * kTileDepth + used, kTileDepth - used);
    }
  }

  const Geometry& geometry_;
  const Images<T>& images_;
  const std::int64_t x_channels_, gy_channels_;
  PackedOperands packed_{};
};

}  // namespace renga::convolution::tiles
