#include "ops/convolution/cpu/tiles/geometry.h"

#include <algorithm>

#include "ops/shape/image.h"

namespace renga::convolution::tiles {
namespace {

// The extents of an image or filter, or numbers for its axes, with 1 or `missing` for a depth that
// it does not have.
Extents extents_of(const Dims& numbers, std::int64_t missing) {
  Extents x{missing, missing, missing};
  std::copy(numbers.begin(), numbers.end(), x.end() - numbers.size());
  return x;
}

Extents spatial(const Array& image) { return extents_of(spatial_extents(image), 1); }

// A phase along one axis, and which elements of the filter belong to it.
struct AxisPhase {
  std::int64_t first, step, count, source_step;
  std::vector<std::pair<std::int64_t, std::int64_t>> taps;  // source, index
};

struct AxisProblem {
  std::int64_t x, y, kernel, stride, pad, dilate;
};

std::vector<AxisPhase> forward_phases(const AxisProblem& axis) {
  AxisPhase phase{0, 1, axis.y, axis.stride, {}};
  for (std::int64_t k = 0; k < axis.kernel; ++k) {
    phase.taps.emplace_back(k * axis.dilate - axis.pad, k);
  }
  return {phase};
}

// Pixel i of x gets element k of the filter times pixel (i + pad - k dilate) / stride of y, where
// that is a whole number.
std::vector<AxisPhase> input_grad_phases(const AxisProblem& axis) {
  std::vector<AxisPhase> phases;
  for (std::int64_t first = 0; first < std::min(axis.stride, axis.x); ++first) {
    AxisPhase phase{first, axis.stride, (axis.x - first + axis.stride - 1) / axis.stride, 1, {}};
    for (std::int64_t k = 0; k < axis.kernel; ++k) {
      const std::int64_t at = first + axis.pad - k * axis.dilate;
      if (at % axis.stride == 0) phase.taps.emplace_back(at / axis.stride, k);
    }
    phases.push_back(phase);
  }
  return phases;
}

Phase joined(const AxisPhase& z, const AxisPhase& y, const AxisPhase& x, const Extents& kernel) {
  Phase phase{{z.first, y.first, x.first},
              {z.step, y.step, x.step},
              {z.count, y.count, x.count},
              {z.source_step, y.source_step, x.source_step},
              {}};
  for (const auto& [z_source, z_index] : z.taps) {
    for (const auto& [y_source, y_index] : y.taps) {
      for (const auto& [x_source, x_index] : x.taps) {
        phase.taps.push_back({{z_source, y_source, x_source},
                              (z_index * kernel[1] + y_index) * kernel[2] + x_index});
      }
    }
  }
  return phase;
}

}  // namespace

std::optional<std::int64_t> Geometry::source_pixel(const Phase& phase, const Tap& tap,
                                                   const Extents& place) const {
  std::int64_t pixel = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t at = tap.source[axis] + place[axis] * phase.source_step[axis];
    if (at < 0 || at >= source[axis]) return std::nullopt;
    pixel = pixel * source[axis] + at;
  }
  return pixel;
}

Geometry geometry_of(const Problem& problem) {
  const Array& W = problem.W;
  const Window& window = problem.window;
  const bool backward = problem.pass == Pass::input_grad;
  const Extents large = spatial(problem.x), small = spatial(problem.y), kernel = spatial(W);
  const Extents stride = extents_of(window.stride, 1), pad = extents_of(window.pad, 0),
                dilate = extents_of(window.dilate, 1);
  const std::int64_t inputs = W.shape(1), outputs = W.shape(0) / window.groups;
  Geometry geometry{problem.x.shape(0),
                    window.groups,
                    backward ? small : large,
                    backward ? large : small,
                    kernel,
                    backward ? outputs : inputs,
                    backward ? inputs : outputs,
                    {}};
  std::array<std::vector<AxisPhase>, 3> phases;
  for (std::size_t i = 0; i < 3; ++i) {
    const AxisProblem axis{large[i], small[i], kernel[i], stride[i], pad[i], dilate[i]};
    phases[i] = backward ? input_grad_phases(axis) : forward_phases(axis);
  }
  for (const AxisPhase& z : phases[0]) {
    for (const AxisPhase& y_phase : phases[1]) {
      for (const AxisPhase& x_phase : phases[2]) {
        geometry.phases.push_back(joined(z, y_phase, x_phase, kernel));
      }
    }
  }
  return geometry;
}

bool is_pointwise(const Geometry& geometry) {
  const Phase& phase = geometry.phases[0];
  return geometry.groups == 1 && geometry.taps() == 1 && geometry.phases.size() == 1 &&
         phase.taps.size() == 1 && phase.taps[0].source == Extents{} &&
         phase.source_step == Extents{1, 1, 1} && geometry.source == geometry.destination;
}

}  // namespace renga::convolution::tiles
