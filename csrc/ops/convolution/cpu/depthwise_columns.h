// The inner loop of depthwise convolution whose kernel has few columns: columns of the result that
// are as far apart as those of the kernel are summed in registers, and each pixel that they read is
// loaded once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "simd/first_floats.h"

namespace renga::convolution::depthwise {

// What pixels are multiplied and summed in.
template <class Pixel>
using Sum = std::conditional_t<std::is_same_v<Pixel, double>, double, float>;

// What such columns read of a row of the input.
template <class Pixel>
struct RowRead {
  const Pixel* pixels;        // the first pixel, if it were inside of the row
  const Sum<Pixel>* weights;  // of a row of the kernel, as PackedFilters has them
  bool is_far;                // whether it is to be prefetched
};

struct ColumnRead {
  std::int64_t channels;
  std::int64_t column_step, block_step;  // steps between columns, and between blocks of weights
  int begin, end;                        // the pixels that are inside of the row
  int count;                             // columns of the result
  bool is_reversed;                      // whether weights are in falling order
  bool is_far;                           // whether the result is to be prefetched
};

template <class Target>
inline constexpr int kColumnsAtOnce = Target::width == 16 ? 8 : 4;

template <class Target, class Pixel>
[[gnu::always_inline]] inline typename simd::Vector<Target, Sum<Pixel>>::V load_present(
    const Pixel* from, int present) {
  if constexpr (std::is_same_v<Pixel, Sum<Pixel>>) {
    return simd::load_first<Target>(from, present);
  } else {
    Pixel some[Target::width] = {};
    std::copy_n(from, present, some);
    return simd::load_floats<Target>(some);
  }
}

// The channels from c on, of which `present` exist unless all of a vector do.
template <class Target, int taps, int step, bool is_whole, class Pixel>
[[gnu::always_inline]] inline void convolve_channels(std::span<const RowRead<Pixel>> rows,
                                                     const ColumnRead& read, std::int64_t c,
                                                     int present, const Sum<Pixel>* bias,
                                                     Pixel* to) {
  using L = simd::Vector<Target, Sum<Pixel>>;
  using V = typename L::V;
  constexpr int group = kColumnsAtOnce<Target>, reads = (group - 1) * step + taps;
  constexpr std::int64_t block = 16;
  V sums[group];
#pragma GCC unroll 8
  for (int i = 0; i < group; ++i) sums[i] = L::load(bias + c);
  for (const RowRead<Pixel>& row : rows) {
    const Sum<Pixel>* const weights = row.weights + c / block * read.block_step + c % block;
    V w[taps];
#pragma GCC unroll 8
    for (int k = 0; k < taps; ++k) {
      w[k] = L::load(weights + (read.is_reversed ? taps - 1 - k : k) * block);
    }
    const Pixel* from = row.pixels + c;
    // The next columns are too far apart for the hardware prefetcher.
    if (row.is_far) {
#pragma GCC unroll 16
      for (int j = reads; j < reads + group * step; ++j) {
        __builtin_prefetch(from + j * read.column_step, 0, 2);
      }
    }
#pragma GCC unroll 24
    for (int j = 0; j < reads; ++j, from += read.column_step) {
      if (j < read.begin || j >= read.end) continue;
      V x;
      if constexpr (is_whole) {
        x = L::load(from);
      } else {
        x = load_present<Target>(from, present);
      }
#pragma GCC unroll 8
      for (int k = 0; k < taps; ++k) {
        if ((j - k) % step == 0 && j >= k && (j - k) / step < group) {
          sums[(j - k) / step] += x * w[k];
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < group; ++i) {
    if (i >= read.count) break;
    Pixel* const pixel = to + i * read.column_step + c;
    if (read.is_far) __builtin_prefetch(pixel + group * read.column_step, 1);
    if constexpr (is_whole) {
      L::store(sums[i], pixel);
    } else if constexpr (std::is_same_v<Pixel, Sum<Pixel>>) {
      simd::store_first<Target>(sums[i], pixel, present);
    } else {
      Pixel some[Target::width];
      simd::store_floats<Target>(sums[i], some);
      std::copy_n(some, present, pixel);
    }
  }
}

template <class Target, int taps, int step, class Pixel>
[[gnu::always_inline]] inline void convolve_columns(std::span<const RowRead<Pixel>> rows,
                                                    const ColumnRead& read, const Sum<Pixel>* bias,
                                                    Pixel* to) {
  constexpr int width = simd::Vector<Target, Sum<Pixel>>::width;
  std::int64_t c = 0;
  for (; c + width <= read.channels; c += width) {
    convolve_channels<Target, taps, step, true>(rows, read, c, width, bias, to);
  }
  if (c == read.channels) return;
  convolve_channels<Target, taps, step, false>(rows, read, c, static_cast<int>(read.channels - c),
                                               bias, to);
}

}  // namespace renga::convolution::depthwise
