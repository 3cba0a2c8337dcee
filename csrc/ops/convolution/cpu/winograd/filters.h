// What Winograd's convolutions move between filters and panels (see packed_gemm.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "ops/convolution/cpu/winograd/tiles.h"

namespace renga::winograd {

// Filters in memory, seen as (inputs, outputs), whose taps lie side by side. One of the two steps
// is a filter's size.
struct Filters {
  float* data;
  std::int64_t inputs, outputs;
  std::int64_t input_step, output_step;
};

// Where in a filter the taps lie that a scheme takes: the first one, and the steps to the next row
// and column.
struct Taps {
  int first, down, across;

  int at(int row, int column) const { return first + row * down + column * across; }
};

// Schemes of two taps take a part of filters of 4 by 4.
template <class Scheme>
inline constexpr int filter_size = Scheme::taps == 3 ? 9 : 16;

template <class Target>
[[gnu::always_inline]] inline void interleave(const Floats<Target>& a, const Floats<Target>& b,
                                              Floats<Target>& low, Floats<Target>& high) {
  if constexpr (Target::width == 16) {
    low = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    high =
        __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  } else {
    low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  }
}

// A square of as many vectors as one has lanes: each stage is a perfect shuffle of all its numbers.
template <class Target>
[[gnu::always_inline]] inline void transpose(Floats<Target> (&rows)[Target::width]) {
  constexpr int half = Target::width / 2;
#pragma GCC unroll 4
  for (int stage = 1; stage < Target::width; stage *= 2) {
    Floats<Target> next[Target::width];
#pragma GCC unroll 8
    for (int k = 0; k < half; ++k) {
      interleave<Target>(rows[k], rows[k + half], next[2 * k], next[2 * k + 1]);
    }
#pragma GCC unroll 16
    for (int k = 0; k < Target::width; ++k) rows[k] = next[k];
  }
}

// Writes `columns` numbers of each of kPanel rows, `step` apart, column by column, and fetches as
// much from `next` on. Up to a vector's width may be read past the end of a row.
template <class Target, int columns>
[[gnu::always_inline]] inline void to_lanes(const float* from, const float* next, std::int64_t step,
                                            float* to) {
  constexpr int width = Target::width;
  for (int lane = 0; lane < kPanel; lane += width) {
    for (int first = 0; first < columns; first += width) {
      Floats<Target> rows[width];
#pragma GCC unroll 16
      for (int r = 0; r < width; ++r) {
        const std::int64_t row = (lane + r) * step + first;
        __builtin_prefetch(next + row);
        rows[r] = load_floats<Target>(from + row);
      }
      transpose<Target>(rows);
#pragma GCC unroll 16
      for (int c = 0; c < width; ++c) {
        if (columns % width > 0 && first + c >= columns) break;
        store_floats<Target>(rows[c], to + (first + c) * kPanel + lane);
      }
    }
  }
}

// The way back, for columns in multiples of a vector's width.
template <class Target, int columns>
[[gnu::always_inline]] inline void from_lanes(const float* from, float* to, std::int64_t step) {
  constexpr int width = Target::width;
  static_assert(columns % width == 0);
  for (int lane = 0; lane < kPanel; lane += width) {
    for (int first = 0; first < columns; first += width) {
      Floats<Target> rows[width];
#pragma GCC unroll 16
      for (int c = 0; c < width; ++c) {
        rows[c] = load_floats<Target>(from + (first + c) * kPanel + lane);
      }
      transpose<Target>(rows);
#pragma GCC unroll 16
      for (int r = 0; r < width; ++r) {
        store_floats<Target>(rows[r], to + (lane + r) * step + first);
      }
    }
  }
}

// Filters of one panel of outputs and some inputs, tap after tap of kPanel lanes. Memory has them
// filter by filter, so that they are transposed on the way, as matrices in registers.
template <int size>
struct FilterLanes {
  static constexpr int kInputs = size == 9 ? 16 : 8;  // within the nearest cache
  static constexpr int columns = kInputs * size;

  const float* at(std::int64_t input, int tap) const {
    return lanes + (input * size + tap) * kPanel;
  }
  float* at(std::int64_t input, int tap) { return lanes + (input * size + tap) * kPanel; }

  template <class Target>
  [[gnu::always_inline]] void load(const Filters& W, std::int64_t panel, std::int64_t first) {
    const float* from = W.data + panel * kPanel * W.output_step + first * W.input_step;
    const float* const next = from + kInputs * W.input_step;
    if (W.input_step == size) {
      to_lanes<Target, columns>(from, next, W.output_step, lanes);
      return;
    }
    // A panel's filters lie side by side. They are copied, as nothing may lie behind them.
    float filters[kPanel * size + Target::width] = {};
    for (std::int64_t i = 0; i < kInputs; ++i) {
      std::memcpy(filters, from + i * W.input_step, kPanel * size * sizeof(float));
      to_lanes<Target, size>(filters, next + i * W.input_step, size, at(i, 0));
    }
  }

  template <class Target>
  [[gnu::always_inline]] void store(const Filters& W, std::int64_t panel,
                                    std::int64_t first) const {
    from_lanes<Target, columns>(
        lanes, W.data + panel * kPanel * W.output_step + first * W.input_step, W.output_step);
  }

  alignas(64) float lanes[columns * kPanel];
};

// One panel of outputs, of which rows are inputs, stacked, for each of the parts of a filter,
// `part_step` apart.
template <class Scheme, class Number>
void transform_filters(const Filters& W, std::span<const Taps> parts, std::int64_t part_step,
                       std::int64_t panel, const Layout<Number>& layout, Number* to) {
  using Down = typename Scheme::Down;
  using Across = typename Scheme::Across;
  constexpr int stack = kStack<Number>;
  FilterLanes<filter_size<Scheme>> lanes;
  dispatch<Number>([ =, &W, &lanes ](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using V = Stack<Target, stack>;
    const std::int64_t step = layout.point();
    for (std::int64_t first = 0; first < W.inputs; first += lanes.kInputs) {
      lanes.template load<Target>(W, panel, first);
      Number* part = to + first * kPanel;
      for (const Taps& taps : parts) {
        for (std::int64_t i = 0; i < lanes.kInputs; i += stack) {
          for (std::int64_t c = 0; c < kPanel; c += Target::width) {
            Number* const row = part + i * kPanel + c * stack;
            transform_square<typename Down::Filter, typename Across::Filter, V>(
                [&](int k, int l, V& v) __attribute__((always_inline)) {
                  const int tap = taps.at(k, l);
                  load_stack<Target>(lanes.at(i, tap) + c, lanes.at(i + stack - 1, tap) + c, v);
                },
                [&](int k, int l, const V& v) __attribute__((always_inline)) {
                  store_stack<Target>(v, row + (k * Across::points + l) * step);
                });
          }
        }
        part += part_step;
      }
    }
  });
}

// Writes the filters of one panel of inputs and one of outputs. `from` has for each of the parts of
// a filter, `part_step` apart, the inputs as rows.
template <class Scheme>
void transform_filter_grads(const float* from, std::int64_t part_step, const Layout<float>& layout,
                            std::span<const Taps> parts, std::int64_t input_panel,
                            std::int64_t output_panel, const Filters& gW) {
  using Down = typename Scheme::Down;
  using Across = typename Scheme::Across;
  FilterLanes<filter_size<Scheme>> lanes;
  dispatch<float>([ =, &gW, &lanes ](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using V = Stack<Target, 1>;
    const std::int64_t step = layout.point();
    for (std::int64_t first = 0; first < kPanel; first += lanes.kInputs) {
      const float* part = from + first * kPanel;
      for (const Taps& taps : parts) {
        for (std::int64_t i = 0; i < lanes.kInputs; ++i) {
          for (std::int64_t c = 0; c < kPanel; c += Target::width) {
            const float* const row = part + i * kPanel + c;
            transform_square<typename Down::FilterGrad, typename Across::FilterGrad, V>(
                [&](int k, int l, V& v) __attribute__((always_inline)) {
                  v = load_floats<Target>(row + (k * Across::points + l) * step);
                },
                [&](int k, int l, const V& v) __attribute__((always_inline)) {
                  store_floats<Target>(v, lanes.at(i, taps.at(k, l)) + c);
                });
          }
        }
        part += part_step;
      }
      lanes.template store<Target>(gW, output_panel, input_panel * kPanel + first);
    }
  });
}

}  // namespace renga::winograd
