#include "ops/sampling/band.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/error.h"

namespace renga {
namespace {

// Points of a region along an axis; more mean that its coordinates are wrong.
constexpr double kMostPoints = 1 << 15;

CellPoints pixels(double begin, double end, std::int64_t cells, std::int64_t size) {
  CellPoints points;
  const double start = std::nearbyint(begin);
  const double step = std::max(std::nearbyint(end) - start, 1.0) / static_cast<double>(cells);
  const auto inside = [&](double pixel) {
    return static_cast<std::int64_t>(std::clamp(start + pixel, 0.0, static_cast<double>(size)));
  };
  const std::int64_t first = inside(0);
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    const auto i = static_cast<double>(cell);
    const Run run{inside(std::floor(i * step)), inside(std::ceil((i + 1) * step))};
    points.cells.push_back({run.begin - first, run.end - first});
    points.count.push_back(static_cast<double>(run.end - run.begin));
  }
  for (std::int64_t pixel = first; pixel < first + points.cells.back().end; ++pixel) {
    points.lower.push_back(pixel);
    points.fraction.push_back(0);
  }
  return points;
}

// Adds a point at a position that is moved into the image.
void add_point(CellPoints& points, double position, std::int64_t size) {
  const auto last = static_cast<double>(size - 1);
  const double at = std::clamp(position, 0.0, last);
  const double lower = std::min(std::floor(at), std::max(last - 1, 0.0));
  points.lower.push_back(static_cast<std::int64_t>(lower));
  points.fraction.push_back(at - lower);
}

CellPoints evenly_spread(double begin, double end, std::int64_t cells, std::int64_t size,
                         std::int64_t samples) {
  const double length = std::max(end - begin, 1.0), out = static_cast<double>(cells);
  const double per_cell = samples > 0 ? static_cast<double>(samples) : std::ceil(length / out);
  require<std::invalid_argument>(
      out * per_cell <= kMostPoints, "roi_*_align_2d: expected regions of at most ", kMostPoints,
      " points along an axis, got ", out * per_cell, ": give a sampling_ratio");
  CellPoints points;
  const auto n = static_cast<std::int64_t>(per_cell);
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    const auto before = static_cast<std::int64_t>(points.lower.size());
    for (std::int64_t i = cell * n; i < (cell + 1) * n; ++i) {
      const double at = begin + (static_cast<double>(i) + 0.5) * length / (out * per_cell);
      if (at >= -1 && at <= static_cast<double>(size)) add_point(points, at, size);
    }
    points.cells.push_back({before, static_cast<std::int64_t>(points.lower.size())});
    points.count.push_back(per_cell);
  }
  return points;
}

}  // namespace

Band::Band(std::int64_t size, std::int64_t first, const std::vector<Run>& runs)
    : first(first), taps(0) {
  for (const Run& run : runs) taps = std::max(taps, run.end - run.begin);
  for (const Run& run : runs) {
    begin.push_back(static_cast<std::int32_t>(std::min(run.begin, size - taps)));
  }
  weights.resize(static_cast<std::size_t>(taps * count()));
}

double& Band::weight(std::int64_t i, std::int64_t number) {
  const std::int64_t tap = number - begin[static_cast<std::size_t>(i)];
  return weights[static_cast<std::size_t>(tap * count() + i)];
}

Run Band::used() const {
  Run run{0, 0};
  for (std::int64_t i = 0; i < count() && taps > 0; ++i) {
    const std::int64_t b = begin[static_cast<std::size_t>(i)];
    run = i == 0 ? Run{b, b + taps} : Run{std::min(run.begin, b), std::max(run.end, b + taps)};
  }
  return run;
}

Band transposed(const Band& band) {
  const Run used = band.used();
  std::vector<Run> runs(static_cast<std::size_t>(used.end - used.begin),
                        {std::numeric_limits<std::int64_t>::max(), 0});
  const auto for_each_weight = [&](const auto& visit) {
    for (std::int64_t k = 0; k < band.taps; ++k) {
      for (std::int64_t i = 0; i < band.count(); ++i) {
        const double w = band.weights[static_cast<std::size_t>(k * band.count() + i)];
        const std::int64_t number = band.begin[static_cast<std::size_t>(i)] + k;
        if (w != 0) visit(number - used.begin, band.first + i, w);
      }
    }
  };
  for_each_weight([&](std::int64_t i, std::int64_t number, double) {
    Run& run = runs[static_cast<std::size_t>(i)];
    run = {std::min(run.begin, number), std::max(run.end, number + 1)};
  });
  for (Run& run : runs) {
    if (run.end == 0) run.begin = 0;
  }
  Band other(band.first + band.count(), used.begin, runs);
  for_each_weight(
      [&](std::int64_t i, std::int64_t number, double w) { other.weight(i, number) = w; });
  return other;
}

CellPoints cell_points(double begin, double end, std::int64_t cells, std::int64_t size,
                       std::int64_t samples) {
  return samples < 0 ? pixels(begin, end, cells, size)
                     : evenly_spread(begin, end, cells, size, samples);
}

Band means_of(const CellPoints& points, std::int64_t size) {
  const auto pixels_of = [&](std::int64_t point) {
    const auto k = static_cast<std::size_t>(point);
    return Run{points.lower[k], points.lower[k] + (points.fraction[k] > 0 ? 2 : 1)};
  };
  std::vector<Run> runs;
  for (const Run& cell : points.cells) {
    runs.push_back(cell.begin >= cell.end
                       ? Run{0, 0}
                       : Run{pixels_of(cell.begin).begin, pixels_of(cell.end - 1).end});
  }
  Band band(size, 0, runs);
  for (std::int64_t i = 0; i < band.count(); ++i) {
    const auto c = static_cast<std::size_t>(i);
    for (std::int64_t p = points.cells[c].begin; p < points.cells[c].end; ++p) {
      const auto k = static_cast<std::size_t>(p);
      const double fraction = points.fraction[k];
      band.weight(i, points.lower[k]) += (1 - fraction) / points.count[c];
      if (fraction > 0) band.weight(i, points.lower[k] + 1) += fraction / points.count[c];
    }
  }
  return band;
}

Band values_at(std::span<const double> positions, std::int64_t size) {
  CellPoints points;
  for (const double position : positions) {
    const auto i = static_cast<std::int64_t>(points.cells.size());
    add_point(points, position, size);
    points.cells.push_back({i, i + 1});
    points.count.push_back(1);
  }
  return means_of(points, size);
}

}  // namespace renga
