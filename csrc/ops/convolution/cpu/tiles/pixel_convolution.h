// A convolution on tiles by units of pixels: the source pixels of a unit are copied to where tiles
// can be loaded, in boxes with zeros around them, or gathered.
#pragma once

#include <array>
#include <optional>

#include "devices/parallel.h"
#include "ops/convolution/cpu/tiles/destination.h"
#include "ops/convolution/cpu/tiles/gathered_pixels.h"

namespace renga::convolution::tiles {

// So many bytes of source pixels stay in the second-level cache beside a block of columns.
inline constexpr std::int64_t kCachedPixels = 3 << 18;

// The rows of a left operand: `length` of them for each plane of a unit, of which those with
// i % pitch < width belong to a destination pixel.
struct Planes {
  const bfloat16* data;
  std::int64_t sample_step, plane_step, row_step, length, pitch;
};

// A part of a phase's destination pixels, whose source pixels are copied to where tiles can be
// loaded.
struct Unit {
  std::int64_t sample, samples;
  Extents begin, count;
};

// Computes a phase by units of pixels.
template <class T, class U>
class PixelConvolution {
 public:
  PixelConvolution(const Operands<T, U>& operands, const Phase& phase, bool gathered)
      : operands_(operands),
        phase_(phase),
        boxes_(phase, operands.geometry.groups, operands.layout.tap_depth) {
    if (gathered) {
      gathered_.emplace(phase, operands.geometry.source_channels, operands.layout.depth);
    }
    cut_into_units();
  }

  void run() const {
    const Geometry& geometry = operands_.geometry;
    const std::int64_t units = divide_up(geometry.samples, samples_) * bands();
    const std::int64_t sums = samples_ * product(unit_count_) * geometry.destination_channels;
    const std::int64_t cost = sums * geometry.groups * operands_.layout.depth / 128;
    parallel_for(units, cost, [&](std::int64_t begin, std::int64_t end) {
      const Array memory =
          empty({samples_ * sample_numbers(unit_count_) + slack()}, Dtype::bfloat16);
      simd::run_on_tiles([&](auto target, auto& tiles) __attribute__((always_inline)) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::optional<Unit> after = i + 1 < end ? std::optional(unit(i + 1)) : std::nullopt;
          convolve<decltype(target)>(tiles, unit(i), after, memory.as<bfloat16>());
        }
        finish_streaming();
      });
    });
  }

 private:
  // Pixels are along the height, or along the depth if there is one.
  std::size_t band_axis() const { return phase_.count[0] > 1 ? 0 : 1; }
  std::int64_t bands() const {
    return divide_up(phase_.count[band_axis()], unit_count_[band_axis()]);
  }

  void cut_into_units() {
    const std::int64_t threads = omp_get_max_threads(), samples = operands_.geometry.samples;
    unit_count_ = phase_.count;
    std::int64_t& band = unit_count_[band_axis()];
    const auto bytes = [&] { return 2 * sample_numbers(unit_count_); };
    while (band > 1 && (bytes() > kCachedPixels || samples * bands() < threads)) {
      band = divide_up(band, 2);
    }
    samples_ = 1;
    if (bands() == 1) {
      samples_ = std::clamp<std::int64_t>(kCachedPixels / bytes(), 1, divide_up(samples, threads));
    }
  }

  Unit unit(std::int64_t i) const {
    Unit unit{i / bands() * samples_, 0, {0, 0, 0}, unit_count_};
    unit.samples = std::min(samples_, operands_.geometry.samples - unit.sample);
    const std::size_t axis = band_axis();
    unit.begin[axis] = i % bands() * unit_count_[axis];
    unit.count[axis] = std::min(unit_count_[axis], phase_.count[axis] - unit.begin[axis]);
    return unit;
  }

  // Counts the numbers of one sample of a unit: boxes, or rows that are gathered from boxes.
  std::int64_t sample_numbers(const Extents& count) const {
    if (gathered_) return gathered_->rows_size(count);
    return round_up(boxes_.size(count), kTileDepth);
  }
  // Tiles are loaded whole. Boxes that rows are gathered from lie behind the rows.
  std::int64_t slack() const {
    const std::int64_t row = gathered_ ? operands_.layout.depth : boxes_.pixel_size();
    return kTileBlock * row + GatheredPixels::kSlack +
           (gathered_ ? gathered_->memory_size(unit_count_) : 0);
  }

  template <class Target, class Tiles>
  [[gnu::always_inline]] void convolve(Tiles& tiles, const Unit& unit,
                                       const std::optional<Unit>& after, bfloat16* memory) const {
    const std::int64_t each = sample_numbers(unit.count);
    const auto [depth, height, width] = unit.count;
    for (std::int64_t s = 0; s < unit.samples; ++s) {
      const T* const sample =
          operands_.image.data + (unit.sample + s) * operands_.image.sample_step();
      if (gathered_) {
        bfloat16* const boxes = memory + unit.samples * each + GatheredPixels::kSlack;
        gathered_->template gather<Target>(operands_.image, sample, unit.begin, unit.count, boxes,
                                           memory + s * each);
      } else {
        boxes_.template fill<Target>(operands_.image, sample, unit.begin, unit.count,
                                     memory + s * each);
      }
    }
    if (gathered_) {
      const std::int64_t row = operands_.layout.depth, plane = height * width;
      const TileTerm term{0, 0, row / kTileDepth};
      return multiply<Target>(tiles, unit, {memory, each, plane * row, row, plane, width},
                              {&term, 1}, after);
    }
    const Extents box = boxes_.extents(unit.count);
    const std::int64_t pixel = boxes_.pixel_size();
    std::vector<TileTerm> terms;
    for (std::size_t t = 0; t < phase_.taps.size(); ++t) {
      terms.push_back({boxes_.tap_offset(t, unit.count),
                       phase_.taps[t].index * operands_.layout.tap_depth * kTileEdge,
                       operands_.layout.tap_depth / kTileDepth});
    }
    multiply<Target>(
        tiles, unit,
        {memory, each, box[1] * box[2] * pixel, pixel, (height - 1) * box[2] + width, box[2]},
        terms, after);
  }

  // Counts the blocks of sums of a unit.
  std::int64_t blocks_of(const Unit& unit, const Planes& planes) const {
    const Geometry& geometry = operands_.geometry;
    return geometry.groups * Columns::blocks_of_group(geometry) * unit.samples * unit.count[0] *
           divide_up(planes.length, kTileBlock);
  }

  // Fetches the source pixels of a unit, if all of them are read, while the unit before it is
  // multiplied in so many steps.
  Prefetcher fetch(const std::optional<Unit>& unit, std::int64_t steps) const {
    if (!unit || boxes_.count() < product(phase_.source_step)) return {};
    const SourceImage<T>& image = operands_.image;
    const std::size_t axis = band_axis();
    std::int64_t first = image.extents[axis], last = 0;
    for (const Tap& tap : phase_.taps) {
      first = std::min(first, tap.source[axis]);
      last = std::max(last, tap.source[axis]);
    }
    const std::int64_t step = phase_.source_step[axis], begin = unit->begin[axis] * step;
    first = std::clamp<std::int64_t>(first + begin, 0, image.extents[axis]);
    last = std::clamp<std::int64_t>(last + begin + (unit->count[axis] - 1) * step + 1, first,
                                    image.extents[axis]);
    const std::int64_t line =
        image.sample_step() / image.extents[axis] / (axis == 1 ? image.extents[0] : 1);
    const T* const from = image.data + unit->sample * image.sample_step() + first * line;
    const std::int64_t numbers = (unit->samples - 1) * image.sample_step() + (last - first) * line;
    const std::int64_t bytes = numbers * static_cast<std::int64_t>(sizeof(T));
    return {from, bytes, steps};
  }

  // Where the numbers of each row of a block are written; nullptr for rows that no destination
  // pixel belongs to.
  using Targets = std::array<U*, kTileBlock>;

  // Finds the targets of the rows of a plane from `row` on.
  void find(const Unit& unit, const Planes& planes, std::int64_t s, std::int64_t z,
            std::int64_t row, Targets& targets) const {
    const Geometry& geometry = operands_.geometry;
    const std::int64_t step = phase_.step[2] * geometry.groups * geometry.destination_channels;
    U** to = targets.data();
    U* const* const end = to + std::min(kTileBlock, planes.length - row);
    std::int64_t y = row / planes.pitch, x = row % planes.pitch;
    for (; to < end; x = 0, ++y) {
      const Extents i{unit.begin[0] + z, unit.begin[1] + y, unit.begin[2]};
      U* const line = operands_.at(unit.sample + s, operands_.pixel(phase_, i));
      U* const* const line_end = std::min<U* const*>(end, to + planes.pitch - x);
      for (; x < unit.count[2] && to < line_end; ++x) *to++ = line + x * step;
      while (to < line_end) *to++ = nullptr;
    }
  }

  template <class Target, class Tiles>
  [[gnu::always_inline]] void multiply(Tiles& tiles, const Unit& unit, const Planes& planes,
                                       std::span<const TileTerm> terms,
                                       const std::optional<Unit>& after) const {
    const Geometry& geometry = operands_.geometry;
    const std::int64_t blocks = geometry.groups * Columns::blocks_of_group(geometry);
    const std::int64_t steps = steps_of(terms);
    Prefetcher next = fetch(after, steps * blocks_of(unit, planes));
    const bool streams = streams_sums(operands_.bytes());
    for (std::int64_t i = 0; i < blocks; ++i) {
      const Columns columns = Columns::block(geometry, i);
      const std::int64_t channel = columns.channel(geometry);
      const float* const bias = operands_.bias == nullptr ? nullptr : operands_.bias + channel;
      TileOperands operands{nullptr, planes.row_step,
                            columns.panels(operands_.panels, operands_.layout),
                            operands_.layout.panel_size()};
      Targets targets;
      U* const* target = nullptr;
      const auto write_row = [&](const float* sums) __attribute__((always_inline)) {
        if (U* const to = *target++; to != nullptr) {
          write_sums<Target>(sums, columns.count, bias, false, streams, to + channel);
        }
      };
      TileSums sums;
      RowsWriter writer(steps, write_row, next);
      for (std::int64_t s = 0; s < unit.samples; ++s) {
        for (std::int64_t z = 0; z < unit.count[0]; ++z) {
          operands.left = planes.data + s * planes.sample_step + z * planes.plane_step +
                          (gathered_ ? 0 : columns.group * operands_.layout.tap_depth);
          for (std::int64_t row = 0; row < planes.length; row += kTileBlock) {
            const std::int64_t rows = std::min(kTileBlock, planes.length - row);
            sum_products(tiles, operands, terms, rows, columns.count, false, sums, writer);
            find(unit, planes, s, z, row, targets);
            target = targets.data();
            writer.begin(sums.row(0), rows);
            operands.left += kTileBlock * planes.row_step;
          }
        }
      }
      writer.finish();
    }
  }

  const Operands<T, U>& operands_;
  const Phase& phase_;
  const SourceBoxes boxes_;
  std::optional<GatheredPixels> gathered_;
  Extents unit_count_{};
  std::int64_t samples_ = 1;
};

}  // namespace renga::convolution::tiles
