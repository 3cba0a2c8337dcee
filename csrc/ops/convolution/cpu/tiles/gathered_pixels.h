// Rows of all source pixels that a destination pixel reads, for images of few channels, which fill
// a tile's depth together.
#pragma once

#include "ops/convolution/cpu/tiles/images.h"

namespace renga::convolution::tiles {

// Whether so few channels are gathered. All elements of the filter are in one phase then.
inline bool gains_by_gathering(const Geometry& geometry) {
  return geometry.groups == 1 && geometry.phases.size() == 1 && geometry.taps() > 1 &&
         4 * geometry.source_channels < simd::kTileDepth;
}

// GatheredPixels gathers the rows of a phase without groups. The numbers of a row are by element of
// the filter, in the order of the phase's taps, and by channel; zeros fill it up to `depth`.
class GatheredPixels {
 public:
  GatheredPixels(const Phase& phase, std::int64_t channels, std::int64_t depth)
      : step_(phase.source_step),
        taps_(static_cast<std::int64_t>(phase.taps.size())),
        depth_(depth),
        boxes_(with_unit_steps(phase), 1, channels) {}

  // Numbers of the memory and of the rows of so many destination pixels.
  std::int64_t memory_size(const Extents& count) const {
    return round_up(boxes_.size(source_count(count)), simd::kTileDepth) + kSlack;
  }
  std::int64_t rows_size(const Extents& count) const { return product(count) * depth_; }
  // Runs are copied in whole vectors, which may reach so far beyond the last row.
  static constexpr std::int64_t kSlack = 16;

  // Gathers the rows of the destination pixels from `begin` on, of one sample.
  template <class Target, class T>
  [[gnu::always_inline]] void gather(const SourceImage<T>& image, const T* sample,
                                     const Extents& begin, const Extents& count, bfloat16* memory,
                                     bfloat16* rows) const {
    Extents first;
    for (std::size_t i = 0; i < 3; ++i) first[i] = begin[i] * step_[i];
    boxes_.template fill<Target>(image, sample, first, source_count(count), memory);
    copy_runs(memory, count, rows);
  }

 private:
  struct Run {
    std::int64_t from, length;
  };

  static Phase with_unit_steps(Phase phase) {
    phase.source_step = {1, 1, 1};
    return phase;
  }
  // Counts the source pixels, also those between the ones that destination pixels begin with.
  Extents source_count(const Extents& count) const {
    Extents n;
    for (std::size_t i = 0; i < 3; ++i) n[i] = (count[i] - 1) * step_[i] + 1;
    return n;
  }

  // Elements of the filter whose pixels adjoin are copied together.
  std::vector<Run> runs(const Extents& source) const {
    std::vector<Run> found;
    for (std::int64_t t = 0; t < taps_; ++t) {
      const std::int64_t from = boxes_.tap_offset(static_cast<std::size_t>(t), source);
      if (!found.empty() && found.back().from + found.back().length == from) {
        found.back().length += boxes_.pixel_size();
      } else {
        found.push_back({from, boxes_.pixel_size()});
      }
    }
    return found;
  }

  void copy_runs(const bfloat16* boxes, const Extents& count, bfloat16* rows) const {
    const Extents source = source_count(count), box = boxes_.extents(source);
    const std::int64_t pixel = boxes_.pixel_size(), used = taps_ * pixel;
    const std::vector<Run> all = runs(source);
    for (std::int64_t z = 0; z < count[0]; ++z) {
      for (std::int64_t y = 0; y < count[1]; ++y) {
        const bfloat16* from = boxes + (z * step_[0] * box[1] + y * step_[1]) * box[2] * pixel;
        for (std::int64_t x = 0; x < count[2]; ++x, from += step_[2] * pixel, rows += depth_) {
          bfloat16* to = rows;
          for (const auto& [at, length] : all) {
            // What a vector writes beyond the run is written again.
            for (std::int64_t i = 0; i < length; i += kSlack) {
              std::memcpy(static_cast<void*>(to + i), from + at + i, 2 * kSlack);
            }
            to += length;
          }
          clear_numbers(to, depth_ - used);
        }
      }
    }
  }

  Extents step_;
  std::int64_t taps_, depth_;
  SourceBoxes boxes_;
};

}  // namespace renga::convolution::tiles
