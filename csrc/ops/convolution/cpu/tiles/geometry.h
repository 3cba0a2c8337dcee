// A convolution as products of tiles: which source pixels each destination pixel reads.
//
// The forward pass and the input gradient both read a source image and write a destination image.
// In the forward pass, destination pixels that follow each other read source pixels a stride apart.
// In the input gradient, those that follow each other a stride apart form a phase, and read source
// pixels that follow each other: each phase has its own part of the filter.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/convolution/problem.h"

namespace renga::convolution::tiles {

// Along three axes (depth, height, width); images of two axes have a depth of 1.
using Extents = std::array<std::int64_t, 3>;

inline std::int64_t product(const Extents& x) { return x[0] * x[1] * x[2]; }

// An element of the filter, by its index among all of them, and the source pixel that it meets at
// the first destination pixel of its phase: outside of the image where that is padding.
struct Tap {
  Extents source;
  std::int64_t index;
};

// Destination pixels first + step * i, for i below `count`, read source pixels tap.source +
// source_step * i.
struct Phase {
  Extents first, step, count, source_step;
  std::vector<Tap> taps;
};

// Destination pixel i of a phase, counted by rows.
inline Extents place_of(const Phase& phase, std::int64_t i) {
  const auto& count = phase.count;
  return {i / count[2] / count[1], i / count[2] % count[1], i % count[2]};
}

struct Geometry {
  std::int64_t samples, groups;
  Extents source, destination, kernel;
  std::int64_t source_channels, destination_channels;  // of a group
  std::vector<Phase> phases;

  std::int64_t taps() const { return product(kernel); }
  // The source pixel, counted by rows, that a tap meets at a destination pixel of its phase;
  // nullopt outside of the image.
  std::optional<std::int64_t> source_pixel(const Phase& phase, const Tap& tap,
                                           const Extents& place) const;
};

// Returns the geometry of a problem with images of two or three axes.
Geometry geometry_of(const Problem& problem);

// Whether each destination pixel reads the source pixel at its place.
bool is_pointwise(const Geometry& geometry);

}  // namespace renga::convolution::tiles
