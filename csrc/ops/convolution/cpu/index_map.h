// Which pixels the taps of a convolution meet, for kernels that gather each pixel of their result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/shape/window.h"
#include "tensor/array.h"

namespace renga {

// Along one axis: for each position of the result, which one of the factor each tap meets.
class Meetings {
 public:
  // find(position, tap) may be any number: what lies outside of the factor is not met.
  template <class Find>
  Meetings(std::int64_t positions, std::int64_t taps, std::int64_t factor, const Find& find)
      : taps_(taps), met_(static_cast<std::size_t>(positions * taps)) {
    for (std::int64_t position = 0; position < positions; ++position) {
      std::int64_t first = factor, last = -1;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t at = find(position, tap);
        const bool inside = at >= 0 && at < factor;
        met_[static_cast<std::size_t>(position * taps + tap)] = inside ? at : kNone;
        if (inside) first = std::min(first, at), last = std::max(last, at);
      }
      span_ = std::max(span_, last - first + 1);
    }
  }

  static constexpr std::int64_t kNone = -1;
  std::int64_t taps() const { return taps_; }
  // From the first to the last that one position may meet.
  std::int64_t span() const { return span_; }
  // One number per tap.
  const std::int64_t* at(std::int64_t position) const { return met_.data() + position * taps_; }

 private:
  std::int64_t taps_, span_ = 1;
  std::vector<std::int64_t> met_;
};

// Of rows and columns.
struct TapMeetings {
  Meetings down, across;
};

// For images (N, channels, H, W): the pixels of x that those of y meet.
inline TapMeetings meetings_forward(const Array& x, const Array& W, const Array& y,
                                    const Window& window) {
  const auto along = [&](int axis) {
    return Meetings(y.shape(2 + axis), W.shape(2 + axis), x.shape(2 + axis),
                    [&](std::int64_t position, std::int64_t tap) {
                      return position * window.stride[axis] + tap * window.dilate[axis] -
                             window.pad[axis];
                    });
  };
  return {along(0), along(1)};
}

// The pixels of y that those of x meet.
inline TapMeetings meetings_back(const Array& x, const Array& W, const Array& y,
                                 const Window& window) {
  const auto along = [&](int axis) {
    return Meetings(
        x.shape(2 + axis), W.shape(2 + axis), y.shape(2 + axis),
        [&](std::int64_t position, std::int64_t tap) {
          const std::int64_t met = position + window.pad[axis] - tap * window.dilate[axis];
          return met % window.stride[axis] == 0 ? met / window.stride[axis] : Meetings::kNone;
        });
  };
  return {along(0), along(1)};
}

}  // namespace renga
