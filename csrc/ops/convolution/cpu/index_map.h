// Which pixels of the input image each pixel of a convolution's result reads, per axis and kernel
// offset. The map is for kernels that gather each pixel of their result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/convolution/problem.h"

namespace renga::convolution {

// An AxisIndexMap has, along one axis, a position of the input for each position of the result and
// each kernel offset.
class AxisIndexMap {
 public:
  static constexpr std::int64_t kOutside = -1;

  // find(position, offset) may return any number; those outside of [0, inputs) become kOutside.
  template <class Find>
  AxisIndexMap(std::int64_t positions, std::int64_t offsets, std::int64_t inputs, const Find& find)
      : offsets_(offsets), inputs_(static_cast<std::size_t>(positions * offsets)) {
    for (std::int64_t position = 0; position < positions; ++position) {
      std::int64_t first = inputs, last = -1;
      for (std::int64_t offset = 0; offset < offsets; ++offset) {
        const std::int64_t input = find(position, offset);
        const bool inside = input >= 0 && input < inputs;
        inputs_[static_cast<std::size_t>(position * offsets + offset)] = inside ? input : kOutside;
        if (inside) first = std::min(first, input), last = std::max(last, input);
      }
      span_ = std::max(span_, last - first + 1);
    }
  }

  // Kernel offsets: the kernel's extent.
  std::int64_t offsets() const { return offsets_; }
  // The most input positions from the first to the last that one position reads.
  std::int64_t span() const { return span_; }
  // The input positions that a position reads, one per kernel offset.
  const std::int64_t* inputs_of(std::int64_t position) const {
    return inputs_.data() + position * offsets_;
  }

 private:
  std::int64_t offsets_, span_ = 1;
  std::vector<std::int64_t> inputs_;
};

// Rows are counted along all axes of pixels but the last: volumes have those of all their images.
struct IndexMap {
  AxisIndexMap rows, columns;
};

// Maps each pixel of `result` to those of `input`. find(axis, position, offset) returns the place
// along an axis of pixels, or any number outside of it.
template <class Find>
IndexMap map_pixels(const Array& result, const Array& W, const Array& input, const Find& find) {
  const int last = W.ndim() - 1;
  std::int64_t positions = 1, offsets = 1, inputs = 1;
  for (int axis = 2; axis < last; ++axis) {
    positions *= result.shape(axis), offsets *= W.shape(axis), inputs *= input.shape(axis);
  }
  const auto row = [&](std::int64_t position, std::int64_t offset) {
    std::int64_t place = 0, step = 1;
    for (int axis = last - 1; axis >= 2; --axis) {
      const std::int64_t at = find(axis - 2, position % result.shape(axis), offset % W.shape(axis));
      if (at < 0 || at >= input.shape(axis)) return AxisIndexMap::kOutside;
      place += at * step;
      step *= input.shape(axis), position /= result.shape(axis), offset /= W.shape(axis);
    }
    return place;
  };
  const auto column = [&](std::int64_t position, std::int64_t offset) {
    return find(last - 2, position, offset);
  };
  return {AxisIndexMap(positions, offsets, inputs, row),
          AxisIndexMap(result.shape(last), W.shape(last), input.shape(last), column)};
}

// Maps each pixel of y to the pixels of x.
inline IndexMap map_y_to_x(const Problem& problem) {
  const Window& window = problem.window;
  const auto find = [&](int axis, std::int64_t y, std::int64_t offset) {
    return y * window.stride[axis] + offset * window.dilate[axis] - window.pad[axis];
  };
  return map_pixels(problem.y, problem.W, problem.x, find);
}

// Maps each pixel of x to the pixels of y.
inline IndexMap map_x_to_y(const Problem& problem) {
  const Window& window = problem.window;
  const auto find = [&](int axis, std::int64_t x, std::int64_t offset) {
    const std::int64_t first = x + window.pad[axis] - offset * window.dilate[axis];
    return first % window.stride[axis] == 0 ? first / window.stride[axis] : AxisIndexMap::kOutside;
  };
  return map_pixels(problem.x, problem.W, problem.y, find);
}

}  // namespace renga::convolution
