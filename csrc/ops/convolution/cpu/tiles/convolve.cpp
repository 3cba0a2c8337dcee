#include <algorithm>
#include <optional>

#include "devices/parallel.h"
#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/tiles/gathered_pixels.h"
#include "ops/convolution/cpu/tiles/merged_groups.h"
#include "ops/convolution/cpu/tiles/tile_convolution.h"
#include "ops/convolution/cpu/tiles/weights.h"
#include "ops/matmul/cpu/bfloat16_packing.h"
#include "ops/matmul/cpu/tile_matmul.h"
#include "ops/matmul/cpu/tile_sums.h"

namespace renga {
namespace tile_convolution {
namespace {

// So many bytes of source pixels stay in the second-level cache beside a block of columns.
constexpr std::int64_t kCachedBytes = 3 << 18;

// What all parts of a convolution share. `T` and `U` are float or bfloat16.
template <class T, class U>
struct Operands {
  const Geometry& geometry;
  SourceImage<T> image;
  const bfloat16* panels;
  const FilterPanels& layout;
  const float* bias;  // of all groups, or nullptr
  U* destination;     // dense, channels last

  // The number of a destination pixel of a sample, and where its first channel is written.
  std::int64_t pixel(const Phase& phase, const Extents& i) const {
    std::int64_t at = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      at = at * geometry.destination[axis] + phase.first[axis] + i[axis] * phase.step[axis];
    }
    return at;
  }
  std::int64_t bytes() const {
    return geometry.samples * product(geometry.destination) * geometry.groups *
           geometry.destination_channels * static_cast<std::int64_t>(sizeof(U));
  }
  U* at(std::int64_t sample, std::int64_t pixel) const {
    return destination + (sample * product(geometry.destination) + pixel) * geometry.groups *
                             geometry.destination_channels;
  }
};

// A block of columns, of a group.
struct Columns {
  std::int64_t group, first, count;  // channels of the group

  static std::int64_t blocks_of_group(const Geometry& geometry) {
    return divide_up(geometry.destination_channels, kTileBlock);
  }
  static Columns block(const Geometry& geometry, std::int64_t i) {
    const std::int64_t each = blocks_of_group(geometry), first = i % each * kTileBlock;
    return {i / each, first, std::min(kTileBlock, geometry.destination_channels - first)};
  }
  // The panels, from the first of the block on.
  const bfloat16* panels(const bfloat16* all, const FilterPanels& layout) const {
    return all + group * layout.group_size() + first / kTileEdge * layout.panel_size();
  }
  std::int64_t channel(const Geometry& geometry) const {
    return group * geometry.destination_channels + first;
  }
};

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
          convolve<decltype(target)>(tiles, unit(i), memory.as<bfloat16>());
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
    while (band > 1 && (bytes() > kCachedBytes || samples * bands() < threads)) {
      band = divide_up(band, 2);
    }
    samples_ = 1;
    if (bands() == 1) {
      samples_ = std::clamp<std::int64_t>(kCachedBytes / bytes(), 1, divide_up(samples, threads));
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

  // Of one sample of a unit: boxes, or rows that are gathered from boxes.
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
  [[gnu::always_inline]] void convolve(Tiles& tiles, const Unit& unit, bfloat16* memory) const {
    const std::int64_t each = sample_numbers(unit.count);
    const auto [depth, height, width] = unit.count;
    for (std::int64_t s = 0; s < unit.samples; ++s) {
      const T* const sample =
          operands_.image.data + (unit.sample + s) * operands_.image.sample_size();
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
                              {&term, 1});
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
        terms);
  }

  template <class Target, class Tiles>
  [[gnu::always_inline]] void multiply(Tiles& tiles, const Unit& unit, const Planes& planes,
                                       std::span<const TileTerm> terms) const {
    const Geometry& geometry = operands_.geometry;
    const std::int64_t blocks = geometry.groups * Columns::blocks_of_group(geometry);
    for (std::int64_t i = 0; i < blocks; ++i) {
      const Columns columns = Columns::block(geometry, i);
      for (std::int64_t s = 0; s < unit.samples; ++s) {
        for (std::int64_t z = 0; z < unit.count[0]; ++z) {
          multiply_plane<Target>(tiles, unit, planes, terms, columns, s, z);
        }
      }
    }
  }

  template <class Target, class Tiles>
  [[gnu::always_inline]] void multiply_plane(Tiles& tiles, const Unit& unit, const Planes& planes,
                                             std::span<const TileTerm> terms,
                                             const Columns& columns, std::int64_t s,
                                             std::int64_t z) const {
    const Geometry& geometry = operands_.geometry;
    TileOperands operands{planes.data + s * planes.sample_step + z * planes.plane_step +
                              (gathered_ ? 0 : columns.group * operands_.layout.tap_depth),
                          planes.row_step, columns.panels(operands_.panels, operands_.layout),
                          operands_.layout.panel_size()};
    const std::int64_t channel = columns.channel(geometry);
    const float* const bias = operands_.bias == nullptr ? nullptr : operands_.bias + channel;
    const std::int64_t pixel_step =
        phase_.step[2] * geometry.groups * geometry.destination_channels;
    const auto line_at = [&](std::int64_t y) {
      const Extents i{unit.begin[0] + z, unit.begin[1] + y, unit.begin[2]};
      return operands_.at(unit.sample + s, operands_.pixel(phase_, i)) + channel;
    };
    const bool streams = pays_streaming(operands_.bytes());
    TileSums sums;
    std::int64_t y = 0, x = 0;
    U* line = line_at(0);
    for (std::int64_t row = 0; row < planes.length; row += kTileBlock) {
      const std::int64_t rows = std::min(kTileBlock, planes.length - row);
      sum_products(tiles, operands, terms, rows, columns.count, sums);
      operands.left += kTileBlock * planes.row_step;
      for (std::int64_t i = 0; i < rows; ++i) {
        if (x < unit.count[2]) {
          write_sums<Target>(sums.row(i), columns.count, bias, false, streams,
                             line + x * pixel_step);
        }
        if (++x == planes.pitch) {
          x = 0;
          if (++y < unit.count[1]) line = line_at(y);
        }
      }
    }
  }

  const Operands<T, U>& operands_;
  const Phase& phase_;
  const SourceBoxes boxes_;
  std::optional<GatheredPixels> gathered_;
  Extents unit_count_{};
  std::int64_t samples_ = 1;
};

// Computes small images: the rows of a left operand are the samples' pixels at one place, so that
// there are no zeros around the image. The source is dense, with whole tiles of channels.
template <class U>
void convolve_samples(const Operands<bfloat16, U>& operands) {
  const Geometry& geometry = operands.geometry;
  const std::int64_t row_blocks = divide_up(geometry.samples, kTileBlock);
  const std::int64_t column_blocks = geometry.groups * Columns::blocks_of_group(geometry);
  const std::int64_t pixel = operands.image.pixel_size();
  const std::int64_t cost =
      kTileBlock * kTileBlock * product(geometry.destination) * operands.layout.depth / 128;
  // The terms of each destination pixel: taps outside of the image are none.
  struct Pixel {
    std::int64_t at;
    std::vector<TileTerm> terms;
  };
  std::vector<Pixel> pixels;
  for (const Phase& phase : geometry.phases) {
    for (std::int64_t i = 0; i < product(phase.count); ++i) {
      const Extents place{i / phase.count[2] / phase.count[1], i / phase.count[2] % phase.count[1],
                          i % phase.count[2]};
      Pixel& added = pixels.emplace_back(operands.pixel(phase, place));
      for (const Tap& tap : phase.taps) {
        std::int64_t at = 0;
        bool is_inside = true;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const std::int64_t source = tap.source[axis] + place[axis] * phase.source_step[axis];
          is_inside = is_inside && source >= 0 && source < geometry.source[axis];
          at = at * geometry.source[axis] + source;
        }
        if (!is_inside) continue;
        added.terms.push_back({at * pixel, tap.index * operands.layout.tap_depth * kTileEdge,
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
          const TileOperands at{operands.image.data + rows.first * operands.image.sample_size() +
                                    columns.group * operands.layout.tap_depth,
                                operands.image.sample_size(),
                                columns.panels(operands.panels, operands.layout),
                                operands.layout.panel_size()};
          for (const Pixel& pixel : pixels) {
            sum_products(tiles, at, pixel.terms, rows.computed, columns.count, sums);
            for (std::int64_t s = row; s < row + rows.written; ++s) {
              write_sums<decltype(target)>(
                  sums.row(s - rows.first), columns.count,
                  operands.bias == nullptr ? nullptr : operands.bias + channel, false, false,
                  operands.at(s, pixel.at) + channel);
            }
          }
          row += rows.written;
        }
      }
    });
  });
}

// How rows of left operands are made.
enum class Rows { pixels, gathered, samples };

Rows best_rows(const Geometry& geometry, const FilterPanels& layout) {
  if (gains_by_gathering(geometry)) return Rows::gathered;
  constexpr std::int64_t kCachedSamples = 5 << 18;
  const std::int64_t sample = product(geometry.source) * geometry.groups * layout.tap_depth;
  const auto share = [](std::int64_t n, std::int64_t multiple) {
    return static_cast<double>(n) / static_cast<double>(round_up(n, multiple));
  };
  if (geometry.samples < kTileEdge || 2 * kTileBlock * sample > kCachedSamples) {
    return Rows::pixels;
  }
  // The shares of products that are needed.
  double by_pixels = 0, all = 0, inside = 0, destination = 0;
  for (const Phase& phase : geometry.phases) {
    if (phase.taps.empty()) continue;
    const Extents box = SourceBoxes(phase, 1, 1).extents(phase.count);
    const std::int64_t length = (phase.count[1] - 1) * box[2] + phase.count[2];
    const auto pixels = static_cast<double>(product(phase.count));
    by_pixels += pixels * static_cast<double>(phase.count[1] * phase.count[2]) /
                 static_cast<double>(round_up(length, kTileEdge));
    destination += pixels;
    double products = 0;
    for (const Tap& tap : phase.taps) {
      double reads = 1;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        std::int64_t count = 0;
        for (std::int64_t i = 0; i < phase.count[axis]; ++i) {
          const std::int64_t at = tap.source[axis] + i * phase.source_step[axis];
          count += at >= 0 && at < geometry.source[axis] ? 1 : 0;
        }
        reads *= static_cast<double>(count);
      }
      products += reads;
    }
    inside += products;
    all += pixels * static_cast<double>(phase.taps.size());
  }
  if (inside == 0) return Rows::samples;
  const double by_samples = share(geometry.samples, kTileEdge) * all / inside;
  return by_samples > 1.15 * by_pixels / destination ? Rows::samples : Rows::pixels;
}

// Destination pixels that read nothing.
template <class T, class U>
void write_bias(const Operands<T, U>& operands, const Phase& phase) {
  const Geometry& geometry = operands.geometry;
  const std::int64_t channels = geometry.groups * geometry.destination_channels;
  const std::int64_t each = product(phase.count);
  parallel_for(geometry.samples * each, channels, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t at = i % each;
      const Extents place{at / phase.count[2] / phase.count[1],
                          at / phase.count[2] % phase.count[1], at % phase.count[2]};
      U* const to = operands.at(i / each, operands.pixel(phase, place));
      for (std::int64_t c = 0; c < channels; ++c) {
        to[c] = U(operands.bias == nullptr ? 0.f : operands.bias[c]);
      }
    }
  });
}

template <class T, class U>
void convolve_pixels(const Operands<T, U>& operands, bool gathered) {
  for (const Phase& phase : operands.geometry.phases) {
    if (product(phase.count) == 0) continue;
    if (phase.taps.empty()) {
      write_bias(operands, phase);
    } else {
      PixelConvolution<T, U>(operands, phase, gathered).run();
    }
  }
}

// As bfloat16 numbers with whole tiles of channels.
template <class T>
Array padded_channels(const SourceImage<T>& image, std::int64_t samples, std::int64_t channels) {
  const std::int64_t pixels = samples * product(image.extents);
  const Array padded = empty({pixels, image.groups * channels}, Dtype::bfloat16);
  parallel_for(pixels, image.pixel_size(), [&](std::int64_t begin, std::int64_t end) {
    simd::dispatch<float>([&](auto target) __attribute__((always_inline)) {
      copy_pixels<decltype(target)>(image, image.data + begin * image.pixel_size(), 1,
                                    padded.as<bfloat16>() + begin * image.groups * channels,
                                    channels, end - begin);
    });
  });
  return padded;
}

template <class T, class U>
void convolve(const Operands<T, U>& operands, Rows rows) {
  if (rows != Rows::samples) return convolve_pixels(operands, rows == Rows::gathered);
  const std::int64_t channels = operands.layout.tap_depth;
  SourceImage<bfloat16> image{nullptr, operands.image.extents, operands.image.groups, channels};
  Array padded;
  if constexpr (std::is_same_v<T, bfloat16>) image.data = operands.image.data;
  if (!std::is_same_v<T, bfloat16> || channels != operands.image.channels) {
    padded = padded_channels(operands.image, operands.geometry.samples, channels);
    image.data = padded.as<bfloat16>();
  }
  convolve_samples(Operands<bfloat16, U>{operands.geometry, image, operands.panels, operands.layout,
                                         operands.bias, operands.destination});
}

// Whether each destination pixel reads the source pixel at its place.
bool is_pointwise(const Geometry& geometry) {
  const Phase& phase = geometry.phases[0];
  return geometry.groups == 1 && geometry.taps() == 1 && geometry.phases.size() == 1 &&
         phase.taps.size() == 1 && phase.taps[0].source == Extents{} &&
         phase.source_step == Extents{1, 1, 1} && geometry.source == geometry.destination;
}

// A product of all pixels and a matrix.
void multiply_pixels(const Problem& problem, const Array& bias, PackedWeightCache* cache) {
  const Array source = dense_channels_last(problem.first());
  const ChannelsLastOutput output(problem.result());
  const auto rows = [](const Array& image) {
    const std::int64_t channels = image.shape(image.ndim() - 1);
    return reshape_view(image, {image.size() / channels, channels});
  };
  const Array dense = contiguous(problem.W);
  const Array W = reshape_view(dense, {dense.shape(0), dense.shape(1)});
  multiply_on_tiles(rows(source), problem.pass == Pass::input_grad ? W : transpose_view(W, {1, 0}),
                    bias, rows(output.dense()), false, cache);
  output.finish();
}

template <class Visit>
void visit_numbers(const Array& x, const Visit& visit) {
  if (x.dtype() == Dtype::float32) return visit(x.as<float>());
  visit(x.as<bfloat16>());
}

}  // namespace
}  // namespace tile_convolution

bool tiles_support(const Problem& problem) { return tile_convolution::merged_groups(problem) > 0; }

void tile_convolve(const Problem& problem, const Array& bias, PackedWeightCache* cache) {
  using namespace tile_convolution;
  if (const std::int64_t merged = merged_groups(problem); merged > 1) {
    const Array W = merge_filters(problem.W, problem.window.groups, merged);
    Window window = problem.window;
    window.groups /= merged;
    return tile_convolve({problem.pass, problem.x, W, problem.y, window}, bias, nullptr);
  }
  const Geometry geometry = geometry_of(problem);
  const bool backward = problem.pass == Pass::input_grad;
  if (is_pointwise(geometry)) return multiply_pixels(problem, bias, cache);
  const FilterPanels whole(geometry, false);
  const Rows rows = best_rows(geometry, whole);
  const bool gathered = rows == Rows::gathered;
  const FilterPanels layout(geometry, gathered);
  const auto pack = [&] {
    return pack_filter(contiguous(problem.W), geometry, backward, layout, gathered);
  };
  Array panels;
  if (cache != nullptr) {
    constexpr std::int64_t kLayout = -2;  // no other packing begins so
    panels = cache->get({kLayout, backward, gathered, geometry.groups}, pack);
  }
  if (!panels.defined()) panels = pack();
  const Array added = bias.defined() ? contiguous(cast(bias, Dtype::float32)) : bias;
  const Array source = dense_channels_last(problem.first());
  const ChannelsLastOutput output(problem.result());
  visit_numbers(source, [&]<class T>(const T* from) {
    visit_numbers(output.dense(), [&]<class U>(U* to) {
      convolve(Operands<T, U>{geometry,
                              {from, geometry.source, geometry.groups, geometry.source_channels},
                              panels.as<bfloat16>(),
                              layout,
                              added.defined() ? added.as<float>() : nullptr,
                              to},
               rows);
    });
  });
  output.finish();
}

}  // namespace renga
