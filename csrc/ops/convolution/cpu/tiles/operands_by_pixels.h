// Operands of a weight gradient whose depth runs along the pixels of x, plane by plane of its boxes
// (images.h): an element of the filter is a shift of gy along the depth. gy has lines and columns
// of zeros around it, as wide as boxes are, for the pixels that an element of the filter does not
// meet. Two of its pixels are a pair, so that a shift by two is one by a line of a tile; odd shifts
// read a second copy, whose pairs begin one pixel later. Items are samples, or bands of lines (or
// of planes, if there are several) of one.
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
        around_(boxes_.extents({})),
        planes_(boxes_.inside(phase_.count, geometry.source, 0)),
        lines_(boxes_.inside(phase_.count, geometry.source, 1)),
        extents_{planes_.size(), lines_.size(), phase_.count[2] + around_[2]} {
    lay_out();
    const std::int64_t columns = columns_at_once(x_channels_, gy_channels_, geometry.taps());
    while (packed_.bytes(columns) > kCachedItem && band() > 1) {
      extents_[band_axis()] = divide_up(band(), 2);
      lay_out();
    }
  }

  const PackedOperands& packed() const { return packed_; }
  std::int64_t items() const { return geometry_.samples * bands(); }
  // Returns the terms of so many items that are packed one after another.
  std::vector<std::vector<TileTerm>> terms(std::int64_t items) const {
    std::vector<std::vector<TileTerm>> terms(static_cast<std::size_t>(geometry_.taps()));
    for (std::size_t t = 0; t < phase_.taps.size(); ++t) {
      const auto& [box, shift] = boxes_.place(t);
      const std::int64_t first = first_pixel(t), copy = first % 2;
      for (std::int64_t i = 0; i < items; ++i) {
        for (std::int64_t z = 0; z < extents_[0]; ++z) {
          const std::int64_t gy_plane = z + around_[0] - shift[0];
          terms[static_cast<std::size_t>(phase_.taps[t].index)].push_back(
              {i * packed_.left_size + (box * extents_[0] + z) * plane_,
               i * packed_.panel_size +
                   ((copy * gy_planes() + gy_plane) * gy_plane_ + first - copy) * kTileEdge,
               plane_ / kTileDepth});
        }
      }
    }
    return terms;
  }

  // Items begin to begin + count.
  void pack_left(std::int64_t begin, std::int64_t count, bfloat16* to) const {
    const std::int64_t numbers = boxes_.count() * product(extents_) * boxes_.pixel_size();
    parallel_for(count, 2 * packed_.left_size, [&](std::int64_t first, std::int64_t last) {
      const SingleThread alone;
      const Array memory = empty({numbers}, Dtype::bfloat16);
      for (std::int64_t i = first; i < last; ++i) {
        pack_x((begin + i) / bands(), place(begin + i), memory.as<bfloat16>(),
               to + i * packed_.left_size);
      }
    });
  }
  void pack_right(std::int64_t begin, std::int64_t count, const ColumnRange& columns,
                  bfloat16* to) const {
    const std::vector<T> zeros(static_cast<std::size_t>(columns.count));
    for (std::int64_t i = 0; i < count; ++i) {
      pack_gy((begin + i) / bands(), place(begin + i), columns, zeros.data(),
              count * packed_.panel_size, to + i * packed_.panel_size);
    }
  }

 private:
  std::size_t band_axis() const { return planes_.size() > 1 ? 0 : 1; }
  std::int64_t band() const { return extents_[band_axis()]; }
  std::int64_t bands() const {
    return divide_up(band_axis() == 0 ? planes_.size() : lines_.size(), band());
  }
  std::int64_t gy_planes() const { return extents_[0] + around_[0]; }
  // Where an item begins in the boxes.
  Extents place(std::int64_t item) const {
    Extents at{planes_.begin, lines_.begin, 0};
    at[band_axis()] += item % bands() * band();
    return at;
  }
  // The pixel of a plane of gy, which begins with what is around it, that an element of the filter
  // meets at the first pixel of a box.
  std::int64_t first_pixel(std::size_t tap) const {
    const Extents& shift = boxes_.place(tap).shift;
    return (around_[1] - shift[1]) * extents_[2] + around_[2] - shift[2];
  }

  void lay_out() {
    plane_ = round_up(extents_[1] * extents_[2], kTileDepth);
    gy_plane_ = round_up(plane_ + around_[1] * extents_[2] + around_[2], kTileDepth);
    std::int64_t row = boxes_.count() * extents_[0] * plane_;
    if (row % 512 == 0) row += kTileDepth;
    copies_ = 1;
    for (std::size_t t = 0; t < phase_.taps.size(); ++t) {
      copies_ = std::max(copies_, first_pixel(t) % 2 + 1);
    }
    packed_ = {x_channels_,       row,          geometry_.groups * x_channels_ * row,
               x_channels_ * row, gy_channels_, copies_ * gy_planes() * gy_plane_ * kTileEdge};
  }

  // Whether the box is the image, or lines of it.
  bool reads_whole_lines() const {
    return phase_.taps.size() == 1 && phase_.taps[0].source == Extents{} &&
           phase_.source_step == Extents{1, 1, 1} && extents_[2] == geometry_.source[2] &&
           planes_.size() == 1 && lines_.size() == geometry_.source[1] &&
           lines_.size() % extents_[1] == 0;
  }

  void pack_x(std::int64_t sample, const Extents& at, bfloat16* memory, bfloat16* to) const {
    const T* const image = images_.x.data + sample * images_.x.sample_step();
    if (reads_whole_lines()) {
      const std::int64_t step = images_.x.pixel_step;
      return pack_planes(image + at[1] * extents_[2] * step, step, to);
    }
    simd::dispatch<float>([&](auto target) __attribute__((always_inline)) {
      boxes_.template fill_part<decltype(target)>(images_.x, image, at, extents_, memory);
    });
    pack_planes(memory, boxes_.pixel_size(), to);
  }

  template <class Number>
  void pack_planes(const Number* from, std::int64_t step, bfloat16* to) const {
    const std::int64_t channels = geometry_.source_channels, pixels = extents_[1] * extents_[2];
    for (std::int64_t g = 0; g < geometry_.groups; ++g) {
      bfloat16* const rows = to + g * packed_.left_group_step;
      for (std::int64_t plane = 0; plane < boxes_.count() * extents_[0]; ++plane) {
        bfloat16* const row = rows + plane * plane_;
        pack_bfloat16(from + plane * pixels * step + g * channels, {pixels, channels, false, step},
                      row,
                      {.depth = pixels, .width = channels, .panel = 0, .step = packed_.row_step});
        for (std::int64_t c = 0; c < x_channels_; ++c) {
          const std::int64_t used = c < channels ? pixels : 0;
          clear_numbers(row + c * packed_.row_step + used, plane_ - used);
        }
      }
    }
  }

  void pack_gy(std::int64_t sample, const Extents& at, const ColumnRange& columns, const T* zeros,
               std::int64_t panel_step, bfloat16* to) const {
    const SourceImage<T>& gy = images_.gy;
    const std::int64_t height = phase_.count[1], width = phase_.count[2];
    const std::int64_t channels = std::min(columns.count, gy.channels - columns.first);
    const T* const all =
        gy.data + sample * gy.sample_step() + columns.group * gy.channels + columns.first;
    const PackedLayout layout{
        .depth = gy_plane_, .width = columns.count, .panel = kTileEdge, .step = panel_step};
    const std::int64_t copy_step = copies_ > 1 ? gy_planes() * gy_plane_ * kTileEdge : 0;
    std::vector<const T*> pixels;
    for (std::int64_t i = 0; i < gy_planes(); ++i) {
      const std::int64_t z = at[0] - around_[0] + i;
      pixels.assign(static_cast<std::size_t>(gy_plane_ + 1), zeros);
      auto line = pixels.begin() + around_[2];
      for (std::int64_t j = 0; j < extents_[1] + around_[1]; ++j, line += extents_[2]) {
        const std::int64_t y = at[1] - around_[1] + j;
        if (z < 0 || z >= phase_.count[0] || y < 0 || y >= height) continue;
        const T* pixel = all + (z * height + y) * width * gy.pixel_step;
        for (std::int64_t x = 0; x < width; ++x, pixel += gy.pixel_step) line[x] = pixel;
      }
      pack_pairs<T>(pixels, channels, to + i * gy_plane_ * kTileEdge, layout, copy_step);
    }
  }

  const Geometry& geometry_;
  const Images<T>& images_;
  const Phase& phase_;
  const std::int64_t x_channels_, gy_channels_;
  const SourceBoxes boxes_;
  const Extents around_;        // more pixels than a destination image's that boxes have
  const Range planes_, lines_;  // of boxes, that are not all zeros
  Extents extents_;             // of an item in a box
  std::int64_t plane_ = 0, gy_plane_ = 0, copies_ = 0;
  PackedOperands packed_{};
};

}  // namespace renga::convolution::tiles
