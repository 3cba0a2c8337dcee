// Images as tiles read them: bfloat16, channels last, with zeros around them.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "devices/rounding.h"
#include "ops/convolution/cpu/tiles/geometry.h"
#include "ops/shape/image.h"
#include "simd/float_vector.h"
#include "simd/tiles.h"
#include "tensor/views.h"

namespace renga::convolution::tiles {

// A channels-last image of float or bfloat16 numbers, whose pixels, in their order, are
// `pixel_step` numbers apart.
template <class T>
struct SourceImage {
  const T* data;
  Extents extents;
  std::int64_t groups, channels;  // of a group
  std::int64_t pixel_step;

  std::int64_t pixel_size() const { return groups * channels; }
  std::int64_t sample_step() const { return product(extents) * pixel_step; }
};

// The pixels of an image as rows of channels: where they are if they are evenly spaced, as in a
// part of the channels of a larger image, and otherwise copied.
inline Array pixel_rows(const Array& image) {
  const Array view = channels_last_view(image);
  const std::int64_t channels = view.shape(view.ndim() - 1), item = view.itemsize();
  const Shape shape{view.size() / channels, channels};
  const Array rows = reshape_view(view, shape);
  const bool is_even = rows.defined() && (channels == 1 || rows.strides()[1] == item) &&
                       rows.strides()[0] >= channels * item && rows.strides()[0] % item == 0;
  return is_even ? rows : reshape_view(contiguous(view), shape);
}

template <class T>
SourceImage<T> source_image(const Array& rows, const Extents& extents, std::int64_t groups) {
  return {rows.as<T>(), extents, groups, rows.shape(1) / groups,
          rows.strides()[0] / rows.itemsize()};
}

// A box of pixels, each with `channels` numbers for each group, the image's and zeros. Position p
// along an axis shows pixel offset + step p of the image, or zeros where that is outside.
struct Box {
  Extents extents, offset, step;
  std::int64_t channels;
};

// n numbers, rounded.
template <class Target>
[[gnu::always_inline]] inline void copy_numbers(const float* from, bfloat16* to, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + Target::width <= n; i += Target::width) {
    simd::store_floats<Target>(simd::load_floats<Target>(from + i), to + i);
  }
  for (; i < n; ++i) to[i] = bfloat16(from[i]);
}
template <class Target>
[[gnu::always_inline]] inline void copy_numbers(const bfloat16* from, bfloat16* to,
                                                std::int64_t n) {
  using Line = simd::VectorTypes<simd::Avx512>::UnalignedHalves;
  constexpr std::int64_t width = sizeof(Line) / sizeof(bfloat16), most = 32 * width;
  if (n > most || n % width != 0) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(bfloat16));
    return;
  }
  // A call would take longer.
  for (std::int64_t i = 0; i < n; i += width) {
    *reinterpret_cast<Line*>(to + i) = *reinterpret_cast<const Line*>(from + i);
  }
}

inline void clear_numbers(bfloat16* to, std::int64_t n) {
  std::memset(static_cast<void*>(to), 0, static_cast<std::size_t>(n) * sizeof(bfloat16));
}

// Pixels of a line, `step` apart.
template <class Target, class T>
[[gnu::always_inline]] inline void copy_pixels(const SourceImage<T>& image, const T* from,
                                               std::int64_t step, bfloat16* to,
                                               std::int64_t channels, std::int64_t n) {
  if (step == 1 && channels == image.channels && image.pixel_step == image.pixel_size()) {
    return copy_numbers<Target>(from, to, n * image.pixel_size());
  }
  for (std::int64_t i = 0; i < n; ++i, from += step * image.pixel_step - image.pixel_size()) {
    for (std::int64_t g = 0; g < image.groups; ++g) {
      copy_numbers<Target>(from, to, image.channels);
      clear_numbers(to + image.channels, channels - image.channels);
      from += image.channels;
      to += channels;
    }
  }
}

// The positions along an axis of a box, from `begin` to `end`, that show pixels of the image, from
// `first` on.
struct Overlap {
  Overlap(const Box& box, const Extents& image, std::size_t axis) {
    const std::int64_t offset = box.offset[axis], step = box.step[axis], n = box.extents[axis];
    begin = offset < 0 ? std::min(n, divide_up(-offset, step)) : 0;
    first = offset + begin * step;
    const std::int64_t left = std::max<std::int64_t>(0, image[axis] - first);
    end = std::min(n, begin + divide_up(left, step));
  }
  std::int64_t begin, end, first;
};

// From `begin` to before `end`.
struct Range {
  std::int64_t begin, end;

  std::int64_t size() const { return end - begin; }
};

// A sample of the image, in its box.
template <class Target, class T>
[[gnu::always_inline]] inline void fill_box(const SourceImage<T>& image, const T* sample,
                                            const Box& box, bfloat16* to) {
  const auto [depth, height, width] = box.extents;
  const std::int64_t pixel = image.groups * box.channels, line = width * pixel;
  const Overlap z(box, image.extents, 0), y(box, image.extents, 1), x(box, image.extents, 2);
  for (std::int64_t i = 0; i < depth; ++i) {
    for (std::int64_t j = 0; j < height; ++j, to += line) {
      if (i < z.begin || i >= z.end || j < y.begin || j >= y.end || x.begin == x.end) {
        clear_numbers(to, line);
        continue;
      }
      const std::int64_t row =
          (box.offset[0] + i * box.step[0]) * image.extents[1] + box.offset[1] + j * box.step[1];
      const T* const from = sample + (row * image.extents[2] + x.first) * image.pixel_step;
      clear_numbers(to, x.begin * pixel);
      copy_pixels<Target>(image, from, box.step[2], to + x.begin * pixel, box.channels,
                          x.end - x.begin);
      clear_numbers(to + x.end * pixel, (width - x.end) * pixel);
    }
  }
}

// The source pixels of a phase in boxes, one for each remainder of a pixel by the phase's step, so
// that destination pixels that follow each other read pixels of a box that do, too.
class SourceBoxes {
 public:
  SourceBoxes(const Phase& phase, std::int64_t groups, std::int64_t channels)
      : step_(phase.source_step), groups_(groups), channels_(channels) {
    for (const Tap& tap : phase.taps) {
      for (std::size_t i = 0; i < 3; ++i) first_[i] = std::min(first_[i], tap.source[i]);
    }
    for (const Tap& tap : phase.taps) {
      Place place{};
      Extents remainder;
      for (std::size_t i = 0; i < 3; ++i) {
        const std::int64_t at = tap.source[i] - first_[i];
        remainder[i] = at % step_[i];
        place.shift[i] = at / step_[i];
        farthest_[i] = std::max(farthest_[i], place.shift[i]);
      }
      const auto found = std::find(remainders_.begin(), remainders_.end(), remainder);
      place.box = found - remainders_.begin();
      if (found == remainders_.end()) remainders_.push_back(remainder);
      places_.push_back(place);
    }
  }

  // Returns the extents of each box that serves so many destination pixels.
  Extents extents(const Extents& count) const {
    return {count[0] + farthest_[0], count[1] + farthest_[1], count[2] + farthest_[2]};
  }
  // These are the sizes, in numbers, of a pixel and of all boxes.
  std::int64_t pixel_size() const { return groups_ * channels_; }
  std::int64_t size(const Extents& count) const {
    return static_cast<std::int64_t>(remainders_.size()) * product(extents(count)) * pixel_size();
  }
  // Returns where a tap finds the source of the first destination pixel, in numbers from the boxes'
  // begin.
  std::int64_t tap_offset(std::size_t tap, const Extents& count) const {
    const Extents box = extents(count);
    const auto& [i, shift] = places_[tap];
    return (i * product(box) + (shift[0] * box[1] + shift[1]) * box[2] + shift[2]) * pixel_size();
  }
  // A sample's boxes for destination pixels `begin` to begin + count of the phase.
  template <class Target, class T>
  [[gnu::always_inline]] void fill(const SourceImage<T>& image, const T* sample,
                                   const Extents& begin, const Extents& count, bfloat16* to) const {
    fill_part<Target>(image, sample, begin, extents(count), to);
  }
  // The positions from `begin` on of a sample's boxes, so many of each.
  template <class Target, class T>
  [[gnu::always_inline]] void fill_part(const SourceImage<T>& image, const T* sample,
                                        const Extents& begin, const Extents& extents,
                                        bfloat16* to) const {
    for (const Extents& remainder : remainders_) {
      fill_box<Target>(image, sample, box(remainder, begin, extents), to);
      to += product(extents) * pixel_size();
    }
  }
  // The positions along an axis that show pixels of the image in any box for so many destination
  // pixels; at least one.
  Range inside(const Extents& count, const Extents& image, std::size_t axis) const {
    Range range{kNone, 0};
    for (const Extents& remainder : remainders_) {
      const Overlap overlap(box(remainder, {}, extents(count)), image, axis);
      range.begin = std::min(range.begin, overlap.begin);
      range.end = std::max(range.end, overlap.end);
    }
    return {range.begin, std::max(range.end, range.begin + 1)};
  }
  // The box of a tap, and the position in it of what the first destination pixel reads.
  struct Place {
    std::int64_t box;
    Extents shift;
  };
  const Place& place(std::size_t tap) const { return places_[tap]; }
  std::int64_t count() const { return static_cast<std::int64_t>(remainders_.size()); }

 private:
  Box box(const Extents& remainder, const Extents& begin, const Extents& extents) const {
    Box box{extents, {}, step_, channels_};
    for (std::size_t i = 0; i < 3; ++i) {
      box.offset[i] = first_[i] + remainder[i] + begin[i] * step_[i];
    }
    return box;
  }

  Extents step_, first_{kNone, kNone, kNone}, farthest_{};
  std::int64_t groups_, channels_;
  std::vector<Extents> remainders_;
  std::vector<Place> places_;
  static constexpr std::int64_t kNone = std::int64_t{1} << 40;
};

}  // namespace renga::convolution::tiles
