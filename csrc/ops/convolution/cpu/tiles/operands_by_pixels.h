// Operands of a weight gradient whose depth runs along pixels. x lies in memory by channels, so
// that an element of the filter is a shift along the depth. Items are samples, or bands of lines
// (or of planes, if there are several) of one. What pixels of x an element of the filter meets is
// as in the forward pass.
#pragma once

#include "devices/parallel.h"
#include "devices/single_thread.h"
#include "ops/convolution/cpu/tiles/packed_operands.h"
#include "ops/matmul/cpu/bfloat16_packing.h"

namespace renga::convolution::tiles {

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
    while (item_bytes() > kCachedOperands && band() > 1) {
      count_[band_axis()] = divide_up(band(), 2);
      lay_out();
    }
  }

  const PackedOperands& packed() const { return packed_; }
  std::int64_t items() const { return geometry_.samples * bands(); }
  std::int64_t items_at_once() const {
    return std::clamp<std::int64_t>(kCachedOperands / item_bytes(), 1, items());
  }

  // Returns the terms of so many items that are packed one after another.
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

  // Counts the pixels of all boxes.
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
    const T* const image = images_.x.data + sample * images_.x.sample_step();
    if (reads_whole_lines()) {
      const std::int64_t step = images_.x.pixel_step;
      return pack_pixels(image + at[1] * box_[2] * step, step, to);
    }
    simd::dispatch<float>([&](auto target) __attribute__((always_inline)) {
      boxes_.template fill<decltype(target)>(images_.x, image, at, count_, memory);
    });
    pack_pixels(memory, boxes_.pixel_size(), to);
  }

  template <class Number>
  void pack_pixels(const Number* from, std::int64_t step, bfloat16* to) const {
    const std::int64_t channels = geometry_.source_channels;
    for (std::int64_t g = 0; g < geometry_.groups; ++g) {
      bfloat16* const rows = to + g * packed_.left_group_step;
      pack_bfloat16(from + g * channels, {pixels(), channels, false, step}, rows,
                    {.depth = pixels(), .width = channels, .panel = 0, .step = row_});
      for (std::int64_t c = 0; c < x_channels_; ++c) {
        const std::int64_t used = c < channels ? pixels() : 0;
        clear_numbers(rows + c * row_ + used, row_ - used);
      }
    }
  }

  // Positions that belong to no destination pixel are zeros.
  void pack_gy(std::int64_t sample, const Extents& at, bfloat16* memory, bfloat16* to) const {
    const std::int64_t pixel = images_.gy.pixel_size(), width = phase_.count[2];
    const std::int64_t step = images_.gy.pixel_step;
    const T* const image = images_.gy.data + sample * images_.gy.sample_step();
    const auto line_at = [&](std::int64_t z, std::int64_t y) {
      return image + ((at[0] + z) * phase_.count[1] + at[1] + y) * width * step;
    };
    const std::int64_t planes = std::min(count_[0], phase_.count[0] - at[0]);
    const std::int64_t lines = std::min(count_[1], phase_.count[1] - at[1]);
    const bool is_dense = box_[2] == width && phase_.count[0] == 1;
    if (is_dense && lines == count_[1]) {
      return pack_panels(line_at(0, 0), step, lines * width, to);
    }
    simd::dispatch<float>([&](auto target) __attribute__((always_inline)) {
      for (std::int64_t z = 0; z < count_[0]; ++z) {
        bfloat16* const plane = memory + z * plane_ * pixel;
        const std::int64_t filled = z < planes ? lines : 0;
        for (std::int64_t y = 0; y < filled; ++y) {
          bfloat16* const line = plane + y * box_[2] * pixel;
          copy_pixels<decltype(target)>(images_.gy, line_at(z, y), 1, line, images_.gy.channels,
                                        width);
          clear_numbers(line + width * pixel, (box_[2] - width) * pixel);
        }
        const std::int64_t used = filled * box_[2];
        clear_numbers(plane + used * pixel, (plane_ - used) * pixel);
      }
    });
    pack_panels(memory, pixel, count_[0] * plane_, to);
  }

  template <class Number>
  void pack_panels(const Number* from, std::int64_t step, std::int64_t depth, bfloat16* to) const {
    for (std::int64_t g = 0; g < geometry_.groups; ++g) {
      pack_bfloat16(from + g * geometry_.destination_channels,
                    {depth, geometry_.destination_channels, false, step},
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

}  // namespace renga::convolution::tiles
