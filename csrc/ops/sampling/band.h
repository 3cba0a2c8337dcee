// Numbers along one axis as weighted sums of neighbouring numbers of another: banded matrices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace renga {

// Numbers from `begin` to `end` - 1.
struct Run {
  std::int64_t begin, end;
};

// Result `first + i`, i < count(), is the sum over k < taps of weights[k * count() + i] times
// number begin[i] + k; other results are 0. Weights beyond those that a result has are 0.
struct Band {
  // Makes the band of results first, first + 1, ... from the numbers of `runs`, of 0 to size - 1,
  // without weights.
  Band(std::int64_t size, std::int64_t first, const std::vector<Run>& runs);

  std::int64_t count() const { return static_cast<std::int64_t>(begin.size()); }
  // Returns the weight of `number` in result `first + i`, in whose run it is.
  double& weight(std::int64_t i, std::int64_t number);
  // The numbers that have weights.
  Run used() const;

  std::int64_t first, taps;
  std::vector<std::int32_t> begin;
  std::vector<double> weights;
};

Band transposed(const Band& band);

// Points between the pixels of an axis, from the first cell of a region to the last. Values there
// are (1 - fraction) times that of pixel `lower` and `fraction` times that of the next one.
struct CellPoints {
  std::vector<std::int64_t> lower;
  std::vector<double> fraction;
  std::vector<Run> cells;     // the points of each cell that are inside of the image
  std::vector<double> count;  // how many points each cell has, inside and outside
};

// A region's cells along an axis, and how many points each has: one for each pixel that the rounded
// cell touches if `samples` is below 0; else so many, evenly spread, or, for 0, about one for each
// pixel.
CellPoints cell_points(double begin, double end, std::int64_t cells, std::int64_t size,
                       std::int64_t samples);

// The mean of each cell's points; those outside count as zeros.
Band means_of(const CellPoints& points, std::int64_t size);
// The values at positions from 0 to size - 1, in pixels.
Band values_at(std::span<const double> positions, std::int64_t size);

}  // namespace renga
