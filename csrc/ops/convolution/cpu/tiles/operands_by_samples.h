// Operands of a weight gradient for small images: for each pixel, the depth runs along the samples,
// so that there are no zeros around the image. Items are samples.
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
    set_samples(items_at_once());
  }

  // Items are samples.
  std::int64_t items() const { return geometry_.samples; }
  std::int64_t items_at_once() const {
    const std::int64_t numbers = geometry_.groups * (product(geometry_.source) * x_channels_ +
                                                     product(geometry_.destination) * gy_channels_);
    const std::int64_t sums = geometry_.groups * x_channels_ * gy_channels_ * geometry_.taps();
    const std::int64_t most =
        items_packed_at_once(geometry_.samples, 2 * numbers, product(geometry_.destination), sums);
    return std::clamp<std::int64_t>(most / kTileDepth * kTileDepth, kTileDepth,
                                    round_up(geometry_.samples, kTileDepth));
  }
  const PackedOperands& packed() const { return packed_; }

  std::vector<std::vector<TileTerm>> terms(std::int64_t samples) const {
    std::vector<std::vector<TileTerm>> terms(static_cast<std::size_t>(geometry_.taps()));
    const Phase& phase = geometry_.phases[0];
    for (const Tap& tap : phase.taps) {
      auto& added = terms[static_cast<std::size_t>(tap.index)];
      for (std::int64_t i = 0; i < product(phase.count); ++i) {
        const auto at = geometry_.source_pixel(phase, tap, place_of(phase, i));
        if (!at) continue;
        added.push_back({*at * geometry_.groups * x_channels_ * depth_,
                         i * geometry_.groups * gy_channels_ * depth_,
                         divide_up(samples, kTileDepth)});
      }
    }
    return terms;
  }

  void pack(std::int64_t begin, std::int64_t count, bfloat16* left, bfloat16* right) const {
    const std::int64_t pixels = product(geometry_.source);
    const std::int64_t gy_pixels = product(geometry_.destination);
    const T* const x = images_.x.data + begin * images_.x.sample_step();
    const T* const gy = images_.gy.data + begin * images_.gy.sample_step();
    const std::int64_t cost = (x_channels_ + gy_channels_) * geometry_.groups * depth_ / 8;
    parallel_for(pixels + gy_pixels, cost, [&](std::int64_t first, std::int64_t last) {
      const SingleThread alone;
      for (std::int64_t i = first; i < last; ++i) {
        for (std::int64_t g = 0; g < geometry_.groups; ++g) {
          if (i < pixels) {
            pack_x(x + i * images_.x.pixel_step + g * images_.x.channels, count,
                   left + (i * geometry_.groups + g) * x_channels_ * depth_);
          } else {
            const std::int64_t k = i - pixels;
            pack_gy(gy + k * images_.gy.pixel_step + g * images_.gy.channels, count,
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
    pack_bfloat16(from, {count, geometry_.source_channels, false, images_.x.sample_step()}, to,
                  {.depth = count, .width = geometry_.source_channels, .panel = 0, .step = depth_});
    for (std::int64_t c = 0; c < x_channels_; ++c) {
      const std::int64_t used = c < geometry_.source_channels ? count : 0;
      clear_numbers(to + c * depth_ + used, depth_ - used);
    }
  }
  void pack_gy(const T* from, std::int64_t count, bfloat16* to) const {
    pack_bfloat16(from, {count, geometry_.destination_channels, false, images_.gy.sample_step()},
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

}  // namespace renga::convolution::tiles
