// This header has what the costs of algorithms are made of. The unit is one float32 multiplication;
// all algorithms multiply at the machine's speed (docs/performance.md has the measurements).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "devices/rounding.h"
#include "ops/convolution/problem.h"

namespace renga::convolution {

// An algorithm that is faster than any other has no cost, and one that runs where no other can has
// the highest cost.
inline double no_cost(const Problem&) { return 0; }
inline double highest_cost(const Problem&) { return std::numeric_limits<double>::infinity(); }

// Whether there are two axes of pixels or up to `most`, and a problem's extents and options are
// small enough for kernels that multiply them as 32-bit ints.
inline bool has_common_extents(const Problem& problem, int most = 2) {
  constexpr std::int64_t kLargestOption = 1 << 15, kLargestExtent = 1 << 30;
  const auto within = [](std::span<const std::int64_t> numbers, std::int64_t largest) {
    return std::all_of(numbers.begin(), numbers.end(), [=](auto n) { return n <= largest; });
  };
  const auto& [stride, pad, dilate, groups] = problem.window;
  const Array &x = problem.x, &y = problem.y;
  return x.ndim() <= 2 + most && within({stride.begin(), stride.end()}, kLargestOption) &&
         within({pad.begin(), pad.end()}, kLargestOption) &&
         within({dilate.begin(), dilate.end()}, kLargestOption) &&
         within({x.shape().begin() + 2, x.shape().end()}, kLargestExtent) &&
         within({y.shape().begin() + 2, y.shape().end()}, kLargestExtent);
}

// Whether, besides, images are of float32 or bfloat16 and products of one of the two.
inline bool is_common(const Problem& problem, int most = 2) {
  const Dtype dtype = problem.x.dtype();
  return (dtype == Dtype::float32 || dtype == Dtype::bfloat16) &&
         problem.arithmetic != Arithmetic::bf16x3 && has_common_extents(problem, most);
}

inline std::int64_t channel_pairs(const Problem& problem) {
  return problem.W.shape(0) * problem.W.shape(1);
}
// Counts the channels of the image that is written, if the pass writes one.
inline std::int64_t output_channels(const Problem& problem) {
  return problem.W.shape(problem.pass == Pass::input_grad ? 1 : 0);
}

// The (output pixel, kernel offset) pairs of an image that read inside of it.
inline std::int64_t reads_inside(const Problem& problem) {
  const Window& window = problem.window;
  std::int64_t reads = 1;
  for (int axis = 0; axis < problem.x.ndim() - 2; ++axis) {
    const std::int64_t x = problem.x.shape(2 + axis), kernel = problem.W.shape(2 + axis);
    const std::int64_t dilate = window.dilate[axis];
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < problem.y.shape(2 + axis); ++i) {
      const std::int64_t first = i * window.stride[axis] - window.pad[axis];
      const std::int64_t before = first < 0 ? divide_up(-first, dilate) : 0;
      const std::int64_t until = first < x ? divide_up(x - first, dilate) : 0;
      count += std::max<std::int64_t>(0, std::min(until, kernel) - before);
    }
    reads = saturated_product(reads, count);
  }
  return reads;
}

// AVX-512 multiplies twice as many bfloat16 numbers at a time.
inline double multiplication_cost(const Problem& problem) {
  return problem.multiplies_bfloat16() ? 0.5 : 1;
}

}  // namespace renga::convolution
