// What Winograd's convolution moves between images, filters and panels (see panel_product.cpu.h).
#pragma once

#include <cstdint>

#include "ops/panel_product.cpu.h"
#include "ops/window.h"

namespace renga::winograd {

// Images in memory, channels last; channels are a multiple of kPanel.
struct Images {
  float* data;
  std::int64_t count;
  Pair extents;
  std::int64_t channels;

  std::int64_t panels() const { return channels / kPanel; }
};

// Filters of 3 by 3 taps in memory, seen as (inputs, outputs); `taps_step` is -1 where they are
// turned by half a circle, in which case `data` is the last tap of the first.
struct Filters {
  float* data;
  std::int64_t inputs, outputs;
  std::int64_t input_step, output_step, tap_step;

  std::int64_t panels() const { return outputs / kPanel; }
};

// The tiles of kTile by kTile pixels that cover images, numbered image by image, row by row.
struct Tiles {
  explicit Tiles(const Images& images);

  std::int64_t rows, columns;  // of one image
  std::int64_t count;
};

// Panels for each of the 36 points: rows of kPanel channels. Between two points lies a gap, as
// steps of a power of two would meet in the same lines of the cache.
struct Layout {
  std::int64_t rows, panels;

  std::int64_t panel() const { return rows * kPanel; }
  std::int64_t point() const { return panels * panel() + 16; }
  std::int64_t size() const { return 36 * point(); }
};

// Transforms `layout.rows` tiles from `first` on; past the last tile, the last one again. A tile
// covers output pixels; its input starts `pad` before them.
void transform_inputs(const Images& x, const Tiles& tiles, const Pair& pad, std::int64_t first,
                      const Layout& layout, float* to);
void transform_output_grads(const Images& gy, const Tiles& tiles, std::int64_t first,
                            const Layout& layout, float* to);
// Writes the pixels of up to `layout.rows` tiles, of one panel of channels.
void transform_outputs(const float* from, const Layout& layout, const Tiles& tiles,
                       std::int64_t first, std::int64_t panel, const Images& y);

// A panel of outputs: rows are inputs.
void transform_filters(const Filters& W, std::int64_t panel, const Layout& layout, float* to);
// Writes the taps of one panel of inputs (the rows) and one of outputs.
void transform_filter_grads(const float* from, const Layout& layout, std::int64_t input_panel,
                            std::int64_t output_panel, const Filters& gW);

}  // namespace renga::winograd
