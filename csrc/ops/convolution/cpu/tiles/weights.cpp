#include "ops/convolution/cpu/tiles/weights.h"

#include <algorithm>

#include "devices/parallel.h"
#include "ops/matmul/cpu/bfloat16_packing.h"
#include "ops/matmul/cpu/tile_sums.h"
#include "simd/transpose.h"

namespace renga::convolution::tiles {
namespace {

// The numbers of each element of the filter together: (outputs, inputs, taps) as (taps, outputs,
// inputs). Rows that the vectors of a square would read beyond `end` are copied one by one.
template <class Target, class T>
[[gnu::always_inline]] inline void gather_taps(const T* from, const T* end, std::int64_t inputs,
                                               std::int64_t taps, bfloat16* to,
                                               std::int64_t tap_step) {
  constexpr std::int64_t width = Target::width;
  std::int64_t i = 0;
  for (; i + width <= inputs && from + (i + width) * taps + width <= end; i += width) {
    for (std::int64_t t = 0; t < taps; t += width) {
      simd::Floats<Target> square[width];
#pragma GCC unroll 16
      for (std::int64_t k = 0; k < width; ++k) {
        square[k] = simd::load_floats<Target>(from + (i + k) * taps + t);
      }
      simd::transpose<Target>(square);
      const std::int64_t count = std::min(width, taps - t);
      for (std::int64_t k = 0; k < count; ++k) {
        simd::store_floats<Target>(square[k], to + (t + k) * tap_step + i);
      }
    }
  }
  for (; i < inputs; ++i) {
    for (std::int64_t t = 0; t < taps; ++t) {
      to[t * tap_step + i] = bfloat16(static_cast<float>(from[i * taps + t]));
    }
  }
}

template <class T>
Array filters_by_tap(const Array& W, std::int64_t taps) {
  const std::int64_t outputs = W.shape(0), inputs = W.shape(1);
  const Array by_tap = empty({taps, outputs, inputs}, Dtype::bfloat16);
  const T* const from = W.as<T>();
  parallel_for(outputs, inputs * taps, [&](std::int64_t begin, std::int64_t end) {
    simd::dispatch<float>([&](auto target) __attribute__((always_inline)) {
      for (std::int64_t o = begin; o < end; ++o) {
        gather_taps<decltype(target)>(from + o * inputs * taps, from + W.size(), inputs, taps,
                                      by_tap.as<bfloat16>() + o * inputs, outputs * inputs);
      }
    });
  });
  return by_tap;
}

// The numbers of each destination channel together, by tap and source channel: (outputs, inputs,
// taps) as (outputs, taps, inputs), backward as (inputs, taps, outputs).
template <class T>
Array filters_by_destination(const Array& W, std::int64_t taps, bool backward) {
  const std::int64_t outputs = W.shape(0), inputs = W.shape(1);
  const std::int64_t destinations = backward ? inputs : outputs;
  const std::int64_t sources = backward ? outputs : inputs;
  const std::int64_t destination_step = backward ? taps : inputs * taps;
  const std::int64_t source_step = backward ? inputs * taps : taps;
  const Array filters = empty({destinations, taps, sources}, Dtype::bfloat16);
  auto* to = filters.as<bfloat16>();
  for (std::int64_t i = 0; i < destinations; ++i) {
    for (std::int64_t t = 0; t < taps; ++t) {
      const T* from = W.as<T>() + i * destination_step + t;
      for (std::int64_t k = 0; k < sources; ++k, from += source_step) {
        *to++ = bfloat16(static_cast<float>(*from));
      }
    }
  }
  return filters;
}

template <class T>
Array pack(const Array& W, const Geometry& geometry, bool backward, const FilterPanels& panels,
           bool gathered) {
  const std::int64_t taps = geometry.taps(), inputs = W.shape(1);
  const std::int64_t outputs = W.shape(0) / geometry.groups;  // of a group
  const Array packed = empty({geometry.groups * panels.group_size()}, Dtype::bfloat16);
  const auto columns = [&](const auto* from, const PackedSource& source, std::int64_t group,
                           std::int64_t depth_begin, std::int64_t depth) {
    pack_bfloat16(
        from, source, packed.as<bfloat16>() + group * panels.group_size() + depth_begin * kTileEdge,
        {.depth = depth, .width = panels.columns, .panel = kTileEdge, .step = panels.panel_size()});
  };
  if (gathered) {
    const Array rows = filters_by_destination<T>(W, taps, backward);
    const std::int64_t depth = rows.shape(1) * rows.shape(2);
    columns(rows.as<bfloat16>(), {depth, rows.shape(0), true, depth}, 0, 0, panels.depth);
    return packed;
  }
  const PackedSource source = backward ? PackedSource{outputs, inputs, false, inputs}
                                       : PackedSource{inputs, outputs, true, inputs};
  const std::int64_t group_numbers = outputs * inputs;
  const Array by_tap = taps > 1 ? filters_by_tap<T>(W, taps) : Array();
  for (std::int64_t group = 0; group < geometry.groups; ++group) {
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::int64_t at = (t * geometry.groups + group) * group_numbers;
      const std::int64_t depth = t * panels.tap_depth;
      if (by_tap.defined()) {
        columns(by_tap.as<bfloat16>() + at, source, group, depth, panels.tap_depth);
      } else {
        columns(W.as<T>() + at, source, group, depth, panels.tap_depth);
      }
    }
  }
  return packed;
}

}  // namespace

FilterPanels::FilterPanels(const Geometry& geometry, bool gathered)
    : tap_depth(round_up(geometry.source_channels, kTileDepth)),
      depth(gathered ? round_up(geometry.taps() * geometry.source_channels, kTileDepth)
                     : geometry.taps() * tap_depth),
      columns(round_up(geometry.destination_channels, kTileEdge)) {}

std::int64_t FilterPanels::panel_size() const { return depth * kTileEdge; }
std::int64_t FilterPanels::group_size() const { return depth * columns; }

Array pack_filter(const Array& W, const Geometry& geometry, bool backward,
                  const FilterPanels& panels, bool gathered) {
  if (W.dtype() == Dtype::float32) return pack<float>(W, geometry, backward, panels, gathered);
  return pack<bfloat16>(W, geometry, backward, panels, gathered);
}

}  // namespace renga::convolution::tiles
