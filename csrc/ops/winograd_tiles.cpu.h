// What Winograd's convolutions move between images, filters and panels (see panel_product.cpu.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>
#include <xsimd/xsimd.hpp>

#include "ops/panel_product.cpu.h"
#include "ops/window.h"
#include "ops/winograd_transform.cpu.h"

namespace renga::winograd {

// Images in memory whose channels, whole panels of them, lie side by side.
struct Images {
  float* data;
  std::int64_t count;
  Pair extents;
  std::int64_t channels;
  std::int64_t image_step;
  Pair pixel_step;  // to the next row and column

  std::int64_t panels() const { return channels / kPanel; }
};

// Filters in memory, seen as (inputs, outputs).
struct Filters {
  float* data;
  std::int64_t inputs, outputs;
  std::int64_t input_step, output_step;
  Pair tap_step;  // to the next row and column

  std::int64_t panels() const { return outputs / kPanel; }
};

// The squares of `extent` by `extent` pixels that cover images, numbered image by image, row by
// row.
struct Tiles {
  Tiles(const Images& images, int extent)
      : extent(extent),
        rows((images.extents[0] + extent - 1) / extent),
        columns((images.extents[1] + extent - 1) / extent),
        count(images.count * rows * columns) {}

  int extent;
  std::int64_t rows, columns;  // of one image
  std::int64_t count;
};

// Panels for each of a number of points: rows of kPanel channels. Between two points lies a gap, as
// steps of a power of two would meet in the same lines of the cache.
struct Layout {
  std::int64_t points, rows, panels;

  std::int64_t panel() const { return rows * kPanel; }
  std::int64_t point() const { return panels * panel() + 16; }
  std::int64_t size() const { return points * point(); }
};

using V = xsimd::batch<float>;
constexpr int kWidth = static_cast<int>(V::size);
static_assert(kPanel % kWidth == 0);

// The pixels of a square of an image; those outside of it are `elsewhere`.
template <int Extent>
struct Square {
  Square(const Images& images, const Tiles& tiles, std::int64_t tile, const Pair& pad,
         float* elsewhere) {
    const auto [rows, columns] = images.extents;
    float* const image = images.data + tile / (tiles.rows * tiles.columns) * images.image_step;
    const std::int64_t top = tile / tiles.columns % tiles.rows * tiles.extent - pad[0];
    const std::int64_t left = tile % tiles.columns * tiles.extent - pad[1];
    for (int i = 0; i < Extent; ++i) {
      for (int j = 0; j < Extent; ++j) {
        const std::int64_t row = top + i, column = left + j;
        const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
        pixels[i][j] =
            inside ? image + row * images.pixel_step[0] + column * images.pixel_step[1] : elsewhere;
      }
    }
  }

  // Tiles touch too few lines of the cache in a row for the hardware to see what comes next.
  void prefetch(std::int64_t channel) const {
    for (const auto& row : pixels) {
      for (const float* pixel : row) __builtin_prefetch(pixel + channel);
    }
  }

  float* pixels[Extent][Extent];
};

// Transforms `count` tiles from `first` on into the rows of `to`; past the last tile, the last one
// again. A tile's square starts `pad` before it.
template <class Transform>
void transform_tiles(const Images& x, const Tiles& tiles, const Pair& pad, std::int64_t first,
                     std::int64_t count, const Layout& layout, float* to) {
  std::vector<float> zeros(x.channels);
  const auto square_of = [&](std::int64_t tile) {
    return Square<Transform::from>(x, tiles, std::min(tile, tiles.count - 1), pad, zeros.data());
  };
  auto next = square_of(first);
  for (std::int64_t t = 0; t < count; ++t) {
    const auto square = std::exchange(next, square_of(first + t + 1));
    for (std::int64_t c = 0; c < x.channels; c += kWidth) {
      next.prefetch(c);
      float* const row = to + c / kPanel * layout.panel() + t * kPanel + c % kPanel;
      transform_square<Transform, V>(
          [&](int i, int j) { return V::load_unaligned(square.pixels[i][j] + c); },
          [&](int i, int j, const V& v) {
            v.store_unaligned(row + (i * Transform::to + j) * layout.point());
          });
    }
  }
}

// Filters of one panel of outputs and some inputs, tap after tap of kPanel lanes.
template <int Taps>
struct TapLanes {
  static constexpr std::int64_t kInputs = 16;

  float& at(std::int64_t input, int tap, std::int64_t lane) {
    return lanes[(input * Taps * Taps + tap) * kPanel + lane];
  }

  alignas(64) float lanes[kInputs * Taps * Taps * kPanel];
};

// Writes the pixels of up to `layout.rows` tiles, of one panel of channels.
template <class Scheme>
void transform_outputs(const float* from, const Layout& layout, const Tiles& tiles,
                       std::int64_t first, std::int64_t panel, const Images& y) {
  std::vector<float> nowhere(y.channels);
  const auto square_of = [&](std::int64_t tile) {
    return Square<Scheme::tile>(y, tiles, std::min(tile, tiles.count - 1), {0, 0}, nowhere.data());
  };
  const std::int64_t rows = std::min(layout.rows, tiles.count - first);
  auto next = square_of(first);
  for (std::int64_t t = 0; t < rows; ++t) {
    const auto square = std::exchange(next, square_of(first + t + 1));
    for (std::int64_t c = 0; c < kPanel; c += kWidth) {
      next.prefetch(panel * kPanel + c);
      const float* const row = from + t * kPanel + c;
      transform_square<typename Scheme::Output, V>(
          [&](int i, int j) {
            return V::load_unaligned(row + (i * Scheme::points + j) * layout.point());
          },
          [&](int i, int j, const V& v) {
            v.store_unaligned(square.pixels[i][j] + panel * kPanel + c);
          });
    }
  }
}

// A panel of outputs: rows are inputs.
template <class Scheme>
void transform_filters(const Filters& W, std::int64_t panel, const Layout& layout, float* to) {
  using Taps = TapLanes<Scheme::taps>;
  Taps taps;
  for (std::int64_t first = 0; first < W.inputs; first += Taps::kInputs) {
    const std::int64_t count = std::min(Taps::kInputs, W.inputs - first);
    for (std::int64_t lane = 0; lane < kPanel; ++lane) {
      const float* from = W.data + (panel * kPanel + lane) * W.output_step + first * W.input_step;
      for (std::int64_t i = 0; i < count; ++i, from += W.input_step) {
        __builtin_prefetch(from + count * W.input_step);  // of the inputs that come next
        for (int tap = 0; tap < Scheme::taps * Scheme::taps; ++tap) {
          taps.at(i, tap, lane) =
              from[tap / Scheme::taps * W.tap_step[0] + tap % Scheme::taps * W.tap_step[1]];
        }
      }
    }
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t c = 0; c < kPanel; c += kWidth) {
        float* const row = to + (first + i) * kPanel + c;
        transform_square<typename Scheme::Filter, V>(
            [&](int k, int l) { return V::load_unaligned(&taps.at(i, k * Scheme::taps + l, c)); },
            [&](int k, int l, const V& v) {
              v.store_unaligned(row + (k * Scheme::points + l) * layout.point());
            });
      }
    }
  }
}

// Writes the taps of one panel of inputs (the rows) and one of outputs.
template <class Scheme>
void transform_filter_grads(const float* from, const Layout& layout, std::int64_t input_panel,
                            std::int64_t output_panel, const Filters& gW) {
  using Taps = TapLanes<Scheme::taps>;
  Taps taps;
  for (std::int64_t first = 0; first < kPanel; first += Taps::kInputs) {
    for (std::int64_t i = 0; i < Taps::kInputs; ++i) {
      for (std::int64_t c = 0; c < kPanel; c += kWidth) {
        const float* const row = from + (first + i) * kPanel + c;
        transform_square<typename Scheme::FilterGrad, V>(
            [&](int k, int l) {
              return V::load_unaligned(row + (k * Scheme::points + l) * layout.point());
            },
            [&](int k, int l, const V& v) {
              v.store_unaligned(&taps.at(i, k * Scheme::taps + l, c));
            });
      }
    }
    for (std::int64_t lane = 0; lane < kPanel; ++lane) {
      float* to = gW.data + (output_panel * kPanel + lane) * gW.output_step +
                  (input_panel * kPanel + first) * gW.input_step;
      for (std::int64_t i = 0; i < Taps::kInputs; ++i, to += gW.input_step) {
        for (int tap = 0; tap < Scheme::taps * Scheme::taps; ++tap) {
          to[tap / Scheme::taps * gW.tap_step[0] + tap % Scheme::taps * gW.tap_step[1]] =
              taps.at(i, tap, lane);
        }
      }
    }
  }
}

}  // namespace renga::winograd
