// A convolution of small images on tiles: the rows of a left operand are the samples' pixels at one
// place, so that there are no zeros around the image.
#pragma once

#include "devices/parallel.h"
#include "ops/convolution/cpu/tiles/destination.h"

namespace renga::convolution::tiles {

// The source has whole tiles of channels.
template <class U>
void convolve_samples(const Operands<bfloat16, U>& operands) {
  const Geometry& geometry = operands.geometry;
  const std::int64_t row_blocks = divide_up(geometry.samples, kTileBlock);
  const std::int64_t column_blocks = geometry.groups * Columns::blocks_of_group(geometry);
  const std::int64_t pixel = operands.image.pixel_step;
  const std::int64_t cost =
      kTileBlock * kTileBlock * product(geometry.destination) * operands.layout.depth / 128;
  const std::int64_t steps = geometry.taps() * operands.layout.tap_depth / kTileDepth;
  const std::int64_t sample_step = operands.at(1, 0) - operands.at(0, 0);
  // The terms of each destination pixel: taps outside of the image are none.
  struct Pixel {
    std::int64_t at;
    std::vector<TileTerm> terms;
  };
  std::vector<Pixel> pixels;
  for (const Phase& phase : geometry.phases) {
    for (std::int64_t i = 0; i < product(phase.count); ++i) {
      const Extents place = place_of(phase, i);
      Pixel& added = pixels.emplace_back(operands.pixel(phase, place));
      for (const Tap& tap : phase.taps) {
        const auto at = geometry.source_pixel(phase, tap, place);
        if (!at) continue;
        added.terms.push_back({*at * pixel, tap.index * operands.layout.tap_depth * kTileEdge,
                               operands.layout.tap_depth / kTileDepth});
      }
    }
  }
  parallel_for(row_blocks * column_blocks, cost, [&](std::int64_t begin, std::int64_t end) {
    simd::run_on_tiles([&](auto target, auto& tiles) __attribute__((always_inline)) {
      TileSums sums;
      for (std::int64_t i = begin; i < end; ++i) {
        const Columns columns = Columns::block(geometry, i % column_blocks);
        const std::int64_t channel = columns.channel(geometry);
        const std::int64_t block = i / column_blocks * kTileBlock;
        const std::int64_t end_row = std::min(block + kTileBlock, geometry.samples);
        for (std::int64_t row = block; row < end_row;) {
          const RowBlock rows(row, end_row, geometry.samples);
          const TileOperands at{operands.image.data + rows.first * operands.image.sample_step() +
                                    columns.group * operands.layout.tap_depth,
                                operands.image.sample_step(),
                                columns.panels(operands.panels, operands.layout),
                                operands.layout.panel_size()};
          const float* const bias = operands.bias == nullptr ? nullptr : operands.bias + channel;
          U* to = nullptr;
          const auto write_row = [&](const float* numbers) __attribute__((always_inline)) {
            write_sums<decltype(target)>(numbers, columns.count, bias, false, false, to);
            to += sample_step;
          };
          Prefetcher none;
          RowsWriter writer(steps, write_row, none);
          for (const Pixel& pixel : pixels) {
            sum_products(tiles, at, pixel.terms, rows.computed, columns.count, false, sums, writer);
            to = operands.at(row, pixel.at) + channel;
            writer.begin(sums.row(row - rows.first), rows.written);
          }
          writer.finish();
          row += rows.written;
        }
      }
    });
  });
}

}  // namespace renga::convolution::tiles
