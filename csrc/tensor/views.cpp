#include "tensor/views.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

namespace renga {

int normalize_axis(const char* op, std::int64_t axis, int ndim) {
  require(axis >= -ndim && axis < ndim, op, ": expected an axis from ", -ndim, " to ", ndim - 1,
          ", got ", axis);
  return static_cast<int>(axis < 0 ? axis + ndim : axis);
}

bool same_layout(const Array& a, const Array& b) {
  for (int axis = 0; axis < a.ndim(); ++axis) {
    if (a.shape(axis) != 1 && a.strides()[axis] != b.strides()[axis]) return false;
  }
  return true;
}

bool has_distinct_elements(const Array& x) {
  if (x.is_contiguous() || x.size() == 0) return true;
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // stride, extent
  for (int axis = 0; axis < x.ndim(); ++axis) {
    if (x.shape(axis) > 1) axes.emplace_back(std::abs(x.strides()[axis]), x.shape(axis));
  }
  std::ranges::sort(axes);
  std::int64_t reach = x.itemsize();  // bytes from the first to behind the last element
  for (const auto& [stride, extent] : axes) {
    if (stride < reach) return false;
    reach += stride * (extent - 1);
  }
  return true;
}

Axes normalize_axes(const char* op, const Axes& axes, int ndim) {
  Axes normal;
  for (std::int64_t a : axes) {
    const int axis = normalize_axis(op, a, ndim);
    require<std::invalid_argument>(!normal.contains(axis), op, ": expected different axes, got ",
                                   axes);
    normal.push_back(axis);
  }
  return normal;
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape shape = longer;
  const int shift = longer.size() - shorter.size();
  for (int i = 0; i < shorter.size(); ++i) {
    std::int64_t& extent = shape[i + shift];
    const std::int64_t other = shorter[i];
    require(extent == other || extent == 1 || other == 1, op,
            ": expected shapes that broadcast, got ", a, " and ", b);
    if (extent == 1) extent = other;
  }
  return shape;
}

Array broadcast_view(const char* op, const Array& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int shift = shape.size() - x.ndim();
  require(shift >= 0, op, ": expected a shape of at least ", x.ndim(), " axes for ", x.shape(),
          ", got ", shape);
  Strides strides = Strides::filled(shape.size(), 0);
  for (int i = 0; i < x.ndim(); ++i) {
    require(x.shape(i) == shape[i + shift] || x.shape(i) == 1, op, ": expected shape ", x.shape(),
            " to broadcast to ", shape);
    if (x.shape(i) == shape[i + shift]) strides[i + shift] = x.strides()[i];
  }
  return Array(x.storage(), x.data(), shape, strides, x.dtype());
}

Array transpose_view(const Array& x, const Axes& axes) {
  Shape shape;
  Strides strides;
  for (std::int64_t a : axes) {
    shape.push_back(x.shape(static_cast<int>(a)));
    strides.push_back(x.strides()[static_cast<int>(a)]);
  }
  return Array(x.storage(), x.data(), shape, strides, x.dtype());
}

Array slice_view(const Array& x, int axis, std::int64_t start, std::int64_t length,
                 std::int64_t step) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  std::byte* data = x.data() + (length > 0 ? start * strides[axis] : 0);
  shape[axis] = length;
  strides[axis] *= step;
  return Array(x.storage(), data, shape, strides, x.dtype());
}

Array select_view(const Array& x, int axis, std::int64_t index) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  std::byte* data = x.data() + index * strides[axis];
  shape.erase(axis);
  strides.erase(axis);
  return Array(x.storage(), data, shape, strides, x.dtype());
}

Array diagonal_view(const Array& x, int rows, int columns, std::int64_t offset) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  const std::int64_t row = std::max<std::int64_t>(-offset, 0), column = row + offset;
  const std::int64_t n =
      std::max<std::int64_t>(std::min(shape[rows] - row, shape[columns] - column), 0);
  std::byte* const data = x.data() + (n > 0 ? row * strides[rows] + column * strides[columns] : 0);
  const std::int64_t stride = strides[rows] + strides[columns];
  for (int axis : {std::max(rows, columns), std::min(rows, columns)}) {
    shape.erase(axis);
    strides.erase(axis);
  }
  shape.push_back(n);
  strides.push_back(stride);
  return Array(x.storage(), data, shape, strides, x.dtype());
}

Array expand_view(const Array& x, int axis) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  shape.insert(axis, 1);
  strides.insert(axis, axis < x.ndim() ? x.shape(axis) * x.strides()[axis] : x.itemsize());
  return Array(x.storage(), x.data(), shape, strides, x.dtype());
}

Array reshape_view(const Array& x, const Shape& shape) {
  if (x.size() == 0 || x.is_contiguous()) {
    return Array(x.storage(), x.data(), shape, row_major_strides(shape, x.itemsize()), x.dtype());
  }
  // Both shapes in groups of equal size; a group of x must be evenly strided to be regrouped.
  Strides strides = Strides::filled(shape.size(), x.itemsize());
  int from = 0, to = 0;
  while (from < x.ndim() || to < shape.size()) {
    const int from_start = from, to_start = to;
    std::int64_t have = from < x.ndim() ? x.shape(from++) : 1;
    std::int64_t want = to < shape.size() ? shape[to++] : 1;
    while (have != want) {
      if (have < want) {
        have *= x.shape(from++);
      } else {
        want *= shape[to++];
      }
    }
    std::int64_t stride = 0, extent = 1;
    for (int i = from - 1; i >= from_start; --i) {
      if (x.shape(i) == 1) continue;
      if (extent == 1) {
        stride = x.strides()[i];
      } else if (x.strides()[i] != stride * extent) {
        return Array();
      }
      extent *= x.shape(i);
    }
    for (int i = to - 1; i >= to_start; --i) {
      strides[i] = stride;
      stride *= shape[i];
    }
  }
  return Array(x.storage(), x.data(), shape, strides, x.dtype());
}

}  // namespace renga
