// Which elements of an image the windows of a pooling cover.
#pragma once

#include <algorithm>
#include <vector>

#include "ops/pooling/pooling_axis.h"

namespace renga {

// An axis of a PoolingGrid on the CPU, with a table.
struct TabledAxis : PoolingAxis {
  TabledAxis(const Array& x, const Array& y, const PoolingWindow& window, int axis)
      : PoolingAxis(pooling_axis(x, y, window, axis)) {
    for (std::int64_t i = 0; i < size; ++i) covering.push_back(PoolingAxis::covering(i));
  }
  // `covering` has, for each element of the image, the positions whose windows cover it.
  std::vector<Span> covering;
};

struct PoolingGrid {
  PoolingGrid(const Array& x, const Array& y, const PoolingWindow& window)
      : rows(x, y, window, 0), columns(x, y, window, 1) {
    if (window.area() > kLargestTable) return;
    for (std::int64_t index = 0; index < window.area(); ++index) {
      offsets_.push_back({index / columns.ksize, index % columns.ksize});
    }
  }

  // Calls visit(row, column, index in the window) for the elements of x in the window at (o, p) of
  // y.
  template <class Visit>
  void for_each_inside(std::int64_t o, std::int64_t p, const Visit& visit) const {
    const Span is = rows.inside(o), js = columns.inside(p);
    const std::int64_t top = rows.origin(o), left = columns.origin(p);
    for (std::int64_t i = is.begin; i < is.end; ++i) {
      for (std::int64_t j = js.begin; j < js.end; ++j) {
        visit(top + i, left + j, i * columns.ksize + j);
      }
    }
  }

  // Calls visit(row, column, index in the window) for the windows of y that cover element (i, j) of
  // x.
  template <class Visit>
  void for_each_covering(std::int64_t i, std::int64_t j, const Visit& visit) const {
    const Span os = rows.covering[static_cast<std::size_t>(i)];
    const Span ps = columns.covering[static_cast<std::size_t>(j)];
    for (std::int64_t o = os.begin; o < os.end; ++o) {
      for (std::int64_t p = ps.begin; p < ps.end; ++p) {
        visit(o, p, (i - rows.origin(o)) * columns.ksize + j - columns.origin(p));
      }
    }
  }

  // The row and column of x of element `index` in the window at (o, p) of y.
  Pair element(std::int64_t o, std::int64_t p, std::int64_t index) const {
    const Pair within = offsets_.empty() ? Pair{index / columns.ksize, index % columns.ksize}
                                         : offsets_[static_cast<std::size_t>(index)];
    return {rows.origin(o) + within[0], columns.origin(p) + within[1]};
  }

  TabledAxis rows, columns;

 private:
  static constexpr std::int64_t kLargestTable = 1 << 12;
  std::vector<Pair> offsets_;  // by index; dividing would take longer than all the rest
};

// Access to the pixels of one channel, or to the first channel of pixels with contiguous channels.
template <class T>
class Pixels {
 public:
  Pixels(const Array& x, std::int64_t n, std::int64_t c)
      : data_(x.data() + n * x.strides()[0] + c * x.strides()[1]),
        row_step_(x.strides()[2]),
        column_step_(x.strides()[3]) {}
  T* at(std::int64_t row, std::int64_t column) const {
    return reinterpret_cast<T*>(data_ + row * row_step_ + column * column_step_);
  }

 private:
  std::byte* data_;
  std::int64_t row_step_, column_step_;
};

}  // namespace renga
