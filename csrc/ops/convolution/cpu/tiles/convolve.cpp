
#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/cost.h"
#include "ops/convolution/cpu/selection.h"
#include "ops/convolution/cpu/tiles/merged_groups.h"
#include "ops/convolution/cpu/tiles/pixel_convolution.h"
#include "ops/convolution/cpu/tiles/sample_convolution.h"
#include "ops/convolution/cpu/tiles/tile_convolution.h"
#include "ops/matmul/cpu/bfloat16_matmul.h"
#include "simd/tile_unit.h"

namespace renga::convolution {
namespace tiles {
namespace {

// Rows says how rows of left operands are made.
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
      U* const to = operands.at(i / each, operands.pixel(phase, place_of(phase, i % each)));
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

// Returns the image as bfloat16 numbers with whole tiles of channels.
template <class T>
Array padded_channels(const SourceImage<T>& image, std::int64_t samples, std::int64_t channels) {
  const std::int64_t pixels = samples * product(image.extents);
  const Array padded = empty({pixels, image.groups * channels}, Dtype::bfloat16);
  parallel_for(pixels, image.pixel_size(), [&](std::int64_t begin, std::int64_t end) {
    simd::dispatch<float>([&](auto target) __attribute__((always_inline)) {
      copy_pixels<decltype(target)>(image, image.data + begin * image.pixel_step, 1,
                                    padded.as<bfloat16>() + begin * image.groups * channels,
                                    channels, end - begin);
    });
  });
  return padded;
}

template <class T, class U>
void convolve(const Operands<T, U>& operands, Rows rows) {
  if (rows != Rows::samples) return convolve_pixels(operands, rows == Rows::gathered);
  const auto& [geometry, image, panels, layout, bias, destination] = operands;
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (layout.tap_depth == image.channels) return convolve_samples(operands);
  }
  const Array padded = padded_channels(image, geometry.samples, layout.tap_depth);
  convolve_samples(
      Operands<bfloat16, U>{geometry, source_image<bfloat16>(padded, image.extents, image.groups),
                            panels, layout, bias, destination});
}

// A product of all pixels and a matrix.
void multiply_pixels(const Problem& problem, const Array& bias) {
  const ChannelsLastOutput output(problem.result());
  const std::int64_t channels = output.dense().shape(output.dense().ndim() - 1);
  const Array rows = reshape_view(output.dense(), {output.dense().size() / channels, channels});
  const Array dense = contiguous(problem.W);
  const Array W = reshape_view(dense, {dense.shape(0), dense.shape(1)});
  multiply_on_tiles(pixel_rows(problem.first()),
                    problem.pass == Pass::input_grad ? W : transpose_view(W, {1, 0}), rows, {bias},
                    problem.cache);
  output.finish();
}

template <class Visit>
void visit_numbers(const Array& x, const Visit& visit) {
  if (x.dtype() == Dtype::float32) return visit(x.as<float>());
  visit(x.as<bfloat16>());
}

// The forward pass or the input gradient.
void convolve(const Problem& problem, const Array& bias) {
  if (const std::int64_t merged = merged_groups(problem); merged > 1) {
    const Array W = merge_filters(problem.W, problem.window.groups, merged);
    Window window = problem.window;
    window.groups /= merged;
    return convolve({problem.pass, problem.x, W, problem.y, window}, bias);
  }
  const Geometry geometry = geometry_of(problem);
  const bool backward = problem.pass == Pass::input_grad;
  if (is_pointwise(geometry)) return multiply_pixels(problem, bias);
  const FilterPanels whole(geometry, false);
  const Rows rows = best_rows(geometry, whole);
  const bool gathered = rows == Rows::gathered;
  const FilterPanels layout(geometry, gathered);
  constexpr std::int64_t kLayout = -2;   // no other packing begins so
  constexpr std::int64_t kManyUses = 2;  // each packs a filter that is not kept
  const Array panels = kept_or_packed(
      problem.cache, {kLayout, backward, gathered, geometry.groups},
      [&] { return pack_filter(contiguous(problem.W), geometry, backward, layout, gathered); },
      kManyUses);
  const Array source = pixel_rows(problem.first());
  const ChannelsLastOutput output(problem.result());
  visit_numbers(source, [&]<class T>(const T*) {
    visit_numbers(output.dense(), [&]<class U>(U* to) {
      convolve(Operands<T, U>{geometry, source_image<T>(source, geometry.source, geometry.groups),
                              panels.as<bfloat16>(), layout,
                              bias.defined() ? bias.as<float>() : nullptr, to},
               rows);
    });
  });
  output.finish();
}

bool supports(const Problem& problem) {
  return problem.arithmetic == Arithmetic::tiles && is_common(problem, 3);
}

void run(const Problem& problem, const Epilogue& epilogue) {
  problem.pass == Pass::weight_grad ? weight_grad(problem) : convolve(problem, epilogue.bias);
}

}  // namespace
}  // namespace tiles

bool tiles_support(const Problem& problem) {
  return simd::has_tiles() && tiles::merged_groups(problem) > 0;
}

constinit const Algorithm kTiles{.name = "tiles",
                                 .supports = tiles::supports,
                                 .cost = no_cost,
                                 .run = tiles::run,
                                 .adds_bias = true};

}  // namespace renga::convolution
