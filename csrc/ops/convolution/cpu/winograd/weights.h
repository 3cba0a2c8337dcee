// Winograd transforms between weights in memory and panels (see packed_gemm.h).
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "ops/convolution/cpu/winograd/tiles.h"
#include "simd/transpose.h"

namespace renga::convolution::winograd {

// Weights in memory as (inputs, outputs, kernel offsets), the last contiguous. One of the two steps
// is the kernel's size.
struct Weights {
  float* data;
  std::int64_t inputs, outputs;
  std::int64_t input_step, output_step;
};

// The kernel offsets that a scheme takes: the first one, the steps to the next row and column, and
// how many there are along the two. Where these are fewer than the scheme takes, the last weights
// are 0.
struct KernelOffsets {
  int first, row_step, column_step, rows, columns;

  int at(int row, int column) const { return first + row * row_step + column * column_step; }
  template <class Scheme>
  bool has(int row, int column) const {
    return !Scheme::has_gaps || (row < rows && column < columns);
  }
  // Whether the transformed weights at a point are known to be 0: at the last one, infinity, they
  // are the last weights.
  template <class Scheme>
  bool are_zero_at(int point) const {
    if (!Scheme::has_gaps) return false;
    const int down = point / Scheme::Across::points, across = point % Scheme::Across::points;
    return (down == Scheme::Down::points - 1 && rows < Scheme::extent) ||
           (across == Scheme::Across::points - 1 && columns < Scheme::extent);
  }
};

// Transposes kPanel rows of `columns` numbers, `step` apart, to rows of a panel, and prefetches as
// much from `next` on. May read up to a vector past the end of a row.
template <class Target, int columns>
[[gnu::always_inline]] inline void transpose_to_panel(const float* from, const float* next,
                                                      std::int64_t step, float* to) {
  constexpr int width = Target::width;
  for (int output = 0; output < kPanel; output += width) {
    for (int first = 0; first < columns; first += width) {
      Floats<Target> rows[width];
#pragma GCC unroll 16
      for (int r = 0; r < width; ++r) {
        const std::int64_t row = (output + r) * step + first;
        __builtin_prefetch(next + row, 0, 2);
        rows[r] = load_floats<Target>(from + row);
      }
      simd::transpose<Target>(rows);
#pragma GCC unroll 16
      for (int c = 0; c < width; ++c) {
        if (columns % width > 0 && first + c >= columns) break;
        store_floats<Target>(rows[c], to + (first + c) * kPanel + output);
      }
    }
  }
}

// The inverse, for columns in multiples of a vector's width. Adds to `to`, or overwrites it.
template <class Target, int columns>
[[gnu::always_inline]] inline void transpose_from_panel(const float* from, float* to,
                                                        std::int64_t step, bool add) {
  constexpr int width = Target::width;
  static_assert(columns % width == 0);
  for (int output = 0; output < kPanel; output += width) {
    for (int first = 0; first < columns; first += width) {
      Floats<Target> rows[width];
#pragma GCC unroll 16
      for (int c = 0; c < width; ++c) {
        rows[c] = load_floats<Target>(from + (first + c) * kPanel + output);
      }
      simd::transpose<Target>(rows);
#pragma GCC unroll 16
      for (int r = 0; r < width; ++r) {
        float* const row = to + (output + r) * step + first;
        store_floats<Target>(add ? load_floats<Target>(row) + rows[r] : rows[r], row);
      }
    }
  }
}

// Weights of one panel of outputs and some inputs, transposed: kPanel outputs per input and kernel
// offset.
template <int size>
struct TransposedWeights {
  static constexpr int kInputs = size == 9 ? 16 : 8;  // fit the L1 cache
  static constexpr int columns = kInputs * size;

  const float* at(std::int64_t input, int offset) const {
    return panel_rows + (input * size + offset) * kPanel;
  }
  float* at(std::int64_t input, int offset) {
    return panel_rows + (input * size + offset) * kPanel;
  }

  template <class Target>
  [[gnu::always_inline]] void load(const Weights& W, std::int64_t panel, std::int64_t first) {
    const float* from = W.data + panel * kPanel * W.output_step + first * W.input_step;
    const float* const next = from + kInputs * W.input_step;
    if (W.input_step == size) {
      transpose_to_panel<Target, columns>(from, next, W.output_step, panel_rows);
      return;
    }
    // A panel's weights adjoin. They are copied: memory past them may not be readable.
    float copied[kPanel * size + Target::width] = {};
    for (std::int64_t i = 0; i < kInputs; ++i) {
      std::memcpy(copied, from + i * W.input_step, kPanel * size * sizeof(float));
      transpose_to_panel<Target, size>(copied, next + i * W.input_step, size, at(i, 0));
    }
  }

  template <class Target>
  [[gnu::always_inline]] void store(const Weights& W, std::int64_t panel, std::int64_t first,
                                    bool add) const {
    transpose_from_panel<Target, columns>(
        panel_rows, W.data + panel * kPanel * W.output_step + first * W.input_step, W.output_step,
        add);
  }

  alignas(64) float panel_rows[columns * kPanel];
};

// Writes one panel of outputs with inputs as rows, pair-interleaved for bfloat16, for each source
// of kernel offsets, `source_step` apart.
template <class Scheme, class Number>
void transform_weights(const Weights& W, std::span<const KernelOffsets> sources,
                       std::int64_t source_step, std::int64_t panel, const Layout<Number>& layout,
                       Number* to) {
  using Down = typename Scheme::Down;
  using Across = typename Scheme::Across;
  constexpr int interleave = kInterleave<Number>;
  TransposedWeights<Scheme::kernel_size> weights;
  dispatch<Number, float>([ =, &W, &weights ](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using V = Pack<Target, interleave>;
    const std::int64_t step = layout.point();
    for (std::int64_t first = 0; first < W.inputs; first += weights.kInputs) {
      weights.template load<Target>(W, panel, first);
      Number* source = to + first * kPanel;
      for (const KernelOffsets& offsets : sources) {
        for (std::int64_t i = 0; i < weights.kInputs; i += interleave) {
          for (std::int64_t c = 0; c < kPanel; c += Target::width) {
            Number* const row = source + i * kPanel + c * interleave;
            transform_square<typename Down::Weight, typename Across::Weight, V>(
                [&](int k, int l, V& v) __attribute__((always_inline)) {
                  v = V{};
                  if (!offsets.has<Scheme>(k, l)) return;
                  const int offset = offsets.at(k, l);
                  load_pack<Target>(weights.at(i, offset) + c,
                                    weights.at(i + interleave - 1, offset) + c, v);
                },
                [&](int k, int l, const V& v) __attribute__((always_inline)) {
                  store_pack<Target>(v, row + (k * Across::points + l) * step);
                });
          }
        }
        source += source_step;
      }
    }
  });
}

// Writes the weight gradients of one panel of inputs and one of outputs, or adds them to gW. `from`
// has inputs as rows, for each source of kernel offsets, `source_step` apart.
template <class Scheme>
void transform_weight_grads(const float* from, std::int64_t source_step,
                            const Layout<float>& layout, std::span<const KernelOffsets> sources,
                            std::int64_t input_panel, std::int64_t output_panel, const Weights& gW,
                            bool add) {
  using Down = typename Scheme::Down;
  using Across = typename Scheme::Across;
  TransposedWeights<Scheme::kernel_size> weights;
  dispatch_for<float>([ =, &gW, &weights ](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using V = Pack<Target, 1>;
    const std::int64_t step = layout.point();
    for (std::int64_t first = 0; first < kPanel; first += weights.kInputs) {
      const float* source = from + first * kPanel;
      for (const KernelOffsets& offsets : sources) {
        for (std::int64_t i = 0; i < weights.kInputs; ++i) {
          for (std::int64_t c = 0; c < kPanel; c += Target::width) {
            const float* const row = source + i * kPanel + c;
            transform_square<typename Down::WeightGrad, typename Across::WeightGrad, V>(
                [&](int k, int l, V& v) __attribute__((always_inline)) {
                  v = load_floats<Target>(row + (k * Across::points + l) * step);
                },
                [&](int k, int l, const V& v) __attribute__((always_inline)) {
                  if (!offsets.has<Scheme>(k, l)) return;
                  store_floats<Target>(v, weights.at(i, offsets.at(k, l)) + c);
                });
          }
        }
        source += source_step;
      }
      weights.template store<Target>(gW, output_panel, input_panel * kPanel + first, add);
    }
  });
}

}  // namespace renga::convolution::winograd
