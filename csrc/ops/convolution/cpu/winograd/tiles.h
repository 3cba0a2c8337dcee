// Winograd transforms between images in memory and panels (see packed_gemm.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/convolution/cpu/winograd/transform.h"
#include "ops/matmul/cpu/packed_gemm.h"
#include "ops/shape/window.h"
#include "simd/float_vector.h"

namespace renga::convolution::winograd {

using simd::dispatch_for, simd::Floats, simd::load_floats, simd::store_floats;

// Volumes are images one behind the other. Of each, so many adjoining images are numbered, the
// first of them at a given place; places before the first image or past the last one are padding.
struct Volumes {
  std::int64_t numbered = 0;  // 0: there are no volumes
  std::int64_t first = 0, depth = 0;
};

// Images in memory with contiguous channels, whose number is a multiple of kPanel.
template <class Pixel>
struct Images {
  Pixel* data;
  std::int64_t count;
  Pair extents;
  std::int64_t channels;
  std::int64_t image_step;
  Pair pixel_step;  // to the next row and column
  Volumes volumes = {};

  std::int64_t panels() const { return channels / kPanel; }
  // Returns nullptr for padding.
  Pixel* at(std::int64_t image) const {
    if (volumes.numbered > 0) {
      const std::int64_t place = volumes.first + image % volumes.numbered;
      if (place < 0 || place >= volumes.depth) return nullptr;
      image = image / volumes.numbered * volumes.depth + place;
    }
    return data + image * image_step;
  }
};

// The rectangles of pixels that cover images, numbered image by image and row by row.
struct Tiles {
  template <class Scheme, class Pixel>
  static Tiles of(const Images<Pixel>& images) {
    const Pair extent{Scheme::Down::tile, Scheme::Across::tile};
    const std::int64_t rows = (images.extents[0] + extent[0] - 1) / extent[0];
    const std::int64_t columns = (images.extents[1] + extent[1] - 1) / extent[1];
    return {extent, rows, columns, images.count * rows * columns};
  }

  Pair extent;
  std::int64_t rows, columns;  // of one image
  std::int64_t count;
};

// Panels for each point of a scheme. There is a gap between points: steps of a power of two would
// map to the same cache sets.
template <class Number>
struct Layout {
  std::int64_t points, rows, panels;

  std::int64_t panel() const { return rows * kPanel; }
  std::int64_t point() const {
    return panels * panel() + 64 / static_cast<std::int64_t>(sizeof(Number));
  }
  std::int64_t size() const { return points * point(); }
};

// So many rows of a panel are interleaved (see packed_gemm.h).
template <class Number>
inline constexpr int kInterleave = static_cast<int>(sizeof(float) / sizeof(Number));

// Calls body(target), a target that multiplies Numbers and reads or writes elements of type T.
template <class Number, class T, class Body>
void dispatch(const Body& body) {
  if constexpr (std::is_same_v<Number, bfloat16>) {
    simd::dispatch<bfloat16>(body);
  } else {
    dispatch_for<T>(body);
  }
}

// Two vectors that are transformed together.
template <class V>
struct VectorPair {
  V first, second;

  [[gnu::always_inline]] friend VectorPair operator+(const VectorPair& a, const VectorPair& b) {
    return {a.first + b.first, a.second + b.second};
  }
  [[gnu::always_inline]] friend VectorPair operator-(const VectorPair& a, const VectorPair& b) {
    return {a.first - b.first, a.second - b.second};
  }
  [[gnu::always_inline]] friend VectorPair operator*(float k, const VectorPair& a) {
    return {k * a.first, k * a.second};
  }
};

template <class Target, int size>
using Pack = std::conditional_t<size == 2, VectorPair<Floats<Target>>, Floats<Target>>;

template <class Target, class T>
[[gnu::always_inline]] inline void load_pack(const T* from, const T*, Floats<Target>& v) {
  v = load_floats<Target>(from);
}
template <class Target, class T>
[[gnu::always_inline]] inline void load_pack(const T* from, const T* other,
                                             VectorPair<Floats<Target>>& v) {
  v = {load_floats<Target>(from), load_floats<Target>(other)};
}
template <class Target, class T>
[[gnu::always_inline]] inline void store_pack(const Floats<Target>& v, T* to) {
  store_floats<Target>(v, to);
}
template <class Target>
[[gnu::always_inline]] inline void store_pack(const VectorPair<Floats<Target>>& v, bfloat16* to) {
  simd::to_bfloat16_interleaved<Target>(v.first, v.second, to);
}

// Pointers to the pixels of a rectangle of an image. Those outside of the image, and of tiles past
// the last one, point to `outside`.
template <int Rows, int Columns, class Pixel>
struct Rectangle {
  Rectangle(const Images<Pixel>& images, const Tiles& tiles, std::int64_t tile, const Pair& pad,
            Pixel* outside) {
    Pixel* const image =
        tile < tiles.count ? images.at(tile / (tiles.rows * tiles.columns)) : nullptr;
    const std::int64_t rows = image != nullptr ? images.extents[0] : 0;
    const std::int64_t columns = images.extents[1];
    const std::int64_t top = tile / tiles.columns % tiles.rows * tiles.extent[0] - pad[0];
    const std::int64_t left = tile % tiles.columns * tiles.extent[1] - pad[1];
    for (int i = 0; i < Rows; ++i) {
      for (int j = 0; j < Columns; ++j) {
        const std::int64_t row = top + i, column = left + j;
        const bool is_inside = row >= 0 && row < rows && column >= 0 && column < columns;
        pixels[i][j] = is_inside
                           ? image + row * images.pixel_step[0] + column * images.pixel_step[1]
                           : outside;
      }
    }
  }

  // Tiles touch too few adjoining cache lines for the hardware prefetcher.
  [[gnu::always_inline]] void prefetch(std::int64_t channel) const {
    for (const auto& row : pixels) {
      for (const Pixel* pixel : row) __builtin_prefetch(pixel + channel, 0, 2);
    }
  }

  Pixel* pixels[Rows][Columns];
};

// Transforms `count` tiles from `first` on into rows of panels, pair-interleaved for bfloat16 if
// `interleaved`. A tile's rectangle starts `pad` before it.
template <class Down, class Across, bool interleaved, class Pixel, class Number>
void transform_tiles(const Images<Pixel>& x, const Tiles& tiles, const Pair& pad,
                     std::int64_t first, std::int64_t count, const Layout<Number>& layout,
                     Number* to) {
  constexpr int interleave = interleaved ? kInterleave<Number> : 1;
  using From = Rectangle<Down::from, Across::from, Pixel>;
  std::vector<Pixel> zeros(static_cast<std::size_t>(x.channels));
  dispatch<Number, Pixel>([ =, &x, &tiles, &zeros ](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using V = Pack<Target, interleave>;
    const std::int64_t step = layout.point(), channels = x.channels;
    for (std::int64_t t = 0; t < count; t += interleave) {
      const From from(x, tiles, first + t, pad, zeros.data());
      const From other(x, tiles, first + t + interleave - 1, pad, zeros.data());
      const From next(x, tiles, first + t + interleave, pad, zeros.data());
      for (std::int64_t c = 0; c < channels; c += Target::width) {
        next.prefetch(c);
        Number* const row = to + c / kPanel * layout.panel() + t * kPanel + c % kPanel * interleave;
        transform_square<Down, Across, V>(
            [&](int i, int j, V& v) __attribute__((always_inline)) {
              load_pack<Target>(from.pixels[i][j] + c, other.pixels[i][j] + c, v);
            },
            [&](int i, int j, const V& v) __attribute__((always_inline)) {
              store_pack<Target>(v, row + (i * Across::to + j) * step);
            });
      }
    }
  });
}

// Writes the pixels of `count` tiles from `first` on, as far as there are, and one panel of
// channels, plus the bias unless it is null.
template <class Scheme, class Pixel>
void transform_outputs(const float* from, const Layout<float>& layout, const Tiles& tiles,
                       std::int64_t first, std::int64_t count, std::int64_t panel,
                       const Images<Pixel>& y, const float* bias) {
  using Down = typename Scheme::Down;
  using Across = typename Scheme::Across;
  std::vector<Pixel> outside(static_cast<std::size_t>(y.channels));
  const std::int64_t rows = std::min(count, tiles.count - first);
  dispatch_for<Pixel>([ =, &tiles, &y, &outside ](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using V = Pack<Target, 1>;
    const std::int64_t step = layout.point();
    for (std::int64_t t = 0; t < rows; ++t) {
      const Rectangle<Down::tile, Across::tile, Pixel> to(y, tiles, first + t, {0, 0},
                                                          outside.data());
      const Rectangle<Down::tile, Across::tile, Pixel> next(y, tiles, first + t + 1, {0, 0},
                                                            outside.data());
      for (std::int64_t c = 0; c < kPanel; c += Target::width) {
        next.prefetch(panel * kPanel + c);
        const float* const row = from + t * kPanel + c;
        const V added = bias == nullptr ? V{} : load_floats<Target>(bias + panel * kPanel + c);
        transform_square<typename Down::Output, typename Across::Output, V>(
            [&](int i, int j, V& v) __attribute__((always_inline)) {
              v = load_floats<Target>(row + (i * Across::points + j) * step);
            },
            [&](int i, int j, const V& v) __attribute__((always_inline)) {
              store_floats<Target>(v + added, to.pixels[i][j] + panel * kPanel + c);
            });
      }
    }
  });
}

}  // namespace renga::convolution::winograd
