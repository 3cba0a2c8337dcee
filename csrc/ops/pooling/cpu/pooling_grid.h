// Which elements of an image the windows of a pooling cover.
#pragma once

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
      : rows(x, y, window, 0), columns(x, y, window, 1) {}

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

  // Whether no two windows have an element in common.
  bool are_apart() const { return rows.stride >= rows.ksize && columns.stride >= columns.ksize; }

  TabledAxis rows, columns;
};

// Where the elements of a window of x are by index, in bytes from its first one.
class WindowOffsets {
 public:
  WindowOffsets(const Array& x, const PoolingGrid& grid)
      : row_step_(x.strides()[2]), column_step_(x.strides()[3]), columns_(grid.columns.ksize) {
    constexpr std::int64_t kLargestTable = 1 << 12;
    const std::int64_t area = grid.rows.ksize * columns_;
    for (std::int64_t k = 0; area <= kLargestTable && k < area; ++k) table_.push_back(computed(k));
  }
  // Of any number, for one that is no index.
  std::int64_t of(std::int64_t index) const {
    const auto k = static_cast<std::size_t>(index);
    return k < table_.size() ? table_[k] : computed(index);
  }

 private:
  std::int64_t computed(std::int64_t index) const {
    return index / columns_ * row_step_ + index % columns_ * column_step_;
  }

  std::int64_t row_step_, column_step_, columns_;
  std::vector<std::int64_t> table_;  // dividing would take longer than all the rest
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
