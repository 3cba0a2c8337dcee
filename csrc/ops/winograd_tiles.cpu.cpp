#include "ops/winograd_tiles.cpu.h"

#include <algorithm>
#include <vector>
#include <xsimd/xsimd.hpp>

#include "ops/winograd_transform.cpu.h"

namespace renga::winograd {
namespace {

using V = xsimd::batch<float>;
constexpr int kWidth = static_cast<int>(V::size);
static_assert(kPanel % kWidth == 0);

// The pixels of a square of an image; those outside of it are `elsewhere`.
template <int Extent>
struct Square {
  Square(const Images& images, const Tiles& tiles, std::int64_t tile, const Pair& pad,
         float* elsewhere) {
    const auto [rows, columns] = images.extents;
    const std::int64_t image = tile / (tiles.rows * tiles.columns);
    const std::int64_t top = tile / tiles.columns % tiles.rows * kTile - pad[0];
    const std::int64_t left = tile % tiles.columns * kTile - pad[1];
    for (int i = 0; i < Extent; ++i) {
      for (int j = 0; j < Extent; ++j) {
        const std::int64_t row = top + i, column = left + j;
        const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
        pixels[i][j] =
            inside ? images.data + ((image * rows + row) * columns + column) * images.channels
                   : elsewhere;
      }
    }
  }

  float* pixels[Extent][Extent];
};

template <class Transform>
void transform_tiles(const Images& x, const Tiles& tiles, const Pair& pad, std::int64_t first,
                     const Layout& layout, float* to) {
  std::vector<float> zeros(x.channels);
  for (std::int64_t t = 0; t < layout.rows; ++t) {
    const Square<Transform::from> square(x, tiles, std::min(first + t, tiles.count - 1), pad,
                                         zeros.data());
    for (std::int64_t c = 0; c < x.channels; c += kWidth) {
      float* const row = to + c / kPanel * layout.panel() + t * kPanel + c % kPanel;
      transform_square<Transform, V>(
          [&](int i, int j) { return V::load_unaligned(square.pixels[i][j] + c); },
          [&](int i, int j, const V& v) {
            v.store_unaligned(row + (i * kPoints + j) * layout.point());
          });
    }
  }
}

// Filters of one panel of outputs and some inputs, tap after tap of kPanel lanes.
struct TapLanes {
  static constexpr std::int64_t kInputs = 16;

  float& at(std::int64_t input, int tap, std::int64_t lane) {
    return lanes[(input * 9 + tap) * kPanel + lane];
  }

  alignas(64) float lanes[kInputs * 9 * kPanel];
};

}  // namespace

Tiles::Tiles(const Images& images)
    : rows((images.extents[0] + kTile - 1) / kTile),
      columns((images.extents[1] + kTile - 1) / kTile),
      count(images.count * rows * columns) {}

void transform_inputs(const Images& x, const Tiles& tiles, const Pair& pad, std::int64_t first,
                      const Layout& layout, float* to) {
  transform_tiles<Input>(x, tiles, pad, first, layout, to);
}

void transform_output_grads(const Images& gy, const Tiles& tiles, std::int64_t first,
                            const Layout& layout, float* to) {
  transform_tiles<OutputGrad>(gy, tiles, {0, 0}, first, layout, to);
}

void transform_outputs(const float* from, const Layout& layout, const Tiles& tiles,
                       std::int64_t first, std::int64_t panel, const Images& y) {
  std::vector<float> nowhere(y.channels);
  const std::int64_t rows = std::min(layout.rows, tiles.count - first);
  for (std::int64_t t = 0; t < rows; ++t) {
    const Square<kTile> square(y, tiles, first + t, {0, 0}, nowhere.data());
    for (std::int64_t c = 0; c < kPanel; c += kWidth) {
      const float* const row = from + t * kPanel + c;
      transform_square<Output, V>(
          [&](int i, int j) { return V::load_unaligned(row + (i * kPoints + j) * layout.point()); },
          [&](int i, int j, const V& v) {
            v.store_unaligned(square.pixels[i][j] + panel * kPanel + c);
          });
    }
  }
}

void transform_filters(const Filters& W, std::int64_t panel, const Layout& layout, float* to) {
  TapLanes taps;
  for (std::int64_t first = 0; first < W.inputs; first += TapLanes::kInputs) {
    const std::int64_t count = std::min(TapLanes::kInputs, W.inputs - first);
    for (std::int64_t lane = 0; lane < kPanel; ++lane) {
      const float* from = W.data + (panel * kPanel + lane) * W.output_step + first * W.input_step;
      for (std::int64_t i = 0; i < count; ++i, from += W.input_step) {
        for (int tap = 0; tap < 9; ++tap) taps.at(i, tap, lane) = from[tap * W.tap_step];
      }
    }
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t c = 0; c < kPanel; c += kWidth) {
        float* const row = to + (first + i) * kPanel + c;
        transform_square<Filter, V>(
            [&](int k, int l) { return V::load_unaligned(&taps.at(i, k * kTaps + l, c)); },
            [&](int k, int l, const V& v) {
              v.store_unaligned(row + (k * kPoints + l) * layout.point());
            });
      }
    }
  }
}

void transform_filter_grads(const float* from, const Layout& layout, std::int64_t input_panel,
                            std::int64_t output_panel, const Filters& gW) {
  TapLanes taps;
  for (std::int64_t first = 0; first < kPanel; first += TapLanes::kInputs) {
    for (std::int64_t i = 0; i < TapLanes::kInputs; ++i) {
      for (std::int64_t c = 0; c < kPanel; c += kWidth) {
        const float* const row = from + (first + i) * kPanel + c;
        transform_square<FilterGrad, V>(
            [&](int k, int l) {
              return V::load_unaligned(row + (k * kPoints + l) * layout.point());
            },
            [&](int k, int l, const V& v) { v.store_unaligned(&taps.at(i, k * kTaps + l, c)); });
      }
    }
    for (std::int64_t lane = 0; lane < kPanel; ++lane) {
      float* to = gW.data + (output_panel * kPanel + lane) * gW.output_step +
                  (input_panel * kPanel + first) * gW.input_step;
      for (std::int64_t i = 0; i < TapLanes::kInputs; ++i, to += gW.input_step) {
        for (int tap = 0; tap < 9; ++tap) to[tap * gW.tap_step] = taps.at(i, tap, lane);
      }
    }
  }
}

}  // namespace renga::winograd
