#include "tensor/array.h"

#include <algorithm>

#include "tensor/copy.h"
#include "tensor/extents.h"

namespace renga {

bool Array::is_contiguous() const {
  std::int64_t step = itemsize();
  for (int i = ndim() - 1; i >= 0; --i) {
    if (shape_[i] == 0) return true;
    if (shape_[i] != 1 && strides_[i] != step) return false;
    step *= shape_[i];
  }
  return true;
}

Strides row_major_strides(const Shape& shape, std::int64_t itemsize) {
  Strides strides = Strides::filled(shape.size(), itemsize);
  for (int i = shape.size() - 2; i >= 0; --i) {
    strides[i] = strides[i + 1] * std::max<std::int64_t>(shape[i + 1], 1);
  }
  return strides;
}

Array empty(const Shape& shape, Dtype dtype, Device device) {
  const std::int64_t bytes = require_memory("array", shape, dtype, device);
  auto storage = make_ref<Storage>(static_cast<std::size_t>(bytes), device);
  std::byte* data = storage->data();
  return Array(std::move(storage), data, shape, row_major_strides(shape, size_of(dtype)), dtype);
}

Axes memory_order(const Array& x) {
  Axes order;
  for (int i = 0; i < x.ndim(); ++i) order.push_back(i);
  const auto reach = [&](std::int64_t axis) {
    return std::abs(x.strides()[static_cast<int>(axis)]);
  };
  // Insertion sort: stable, and axes that say nothing about the order (length 1 or stride 0) stay.
  const auto silent = [&](std::int64_t a) {
    return x.shape(static_cast<int>(a)) == 1 || reach(a) == 0;
  };
  for (int i = 1; i < order.size(); ++i) {
    if (silent(order[i])) continue;
    int at = i;
    for (int j = i - 1; j >= 0; --j) {
      if (silent(order[j])) continue;
      if (reach(order[j]) >= reach(order[i])) break;
      at = j;
    }
    if (at != i) std::rotate(order.begin() + at, order.begin() + i, order.begin() + i + 1);
  }
  return order;
}

Array empty_in_order(const Shape& shape, const Axes& order, Dtype dtype, Device device) {
  Array x = empty(shape, dtype, device);
  Strides strides = x.strides();
  std::int64_t step = size_of(dtype);
  for (int i = order.size() - 1; i >= 0; --i) {
    const int axis = static_cast<int>(order[i]);
    strides[axis] = step;
    step *= std::max<std::int64_t>(shape[axis], 1);
  }
  return Array(x.storage(), x.data(), shape, strides, dtype);
}

Array empty_like(const Array& x, std::optional<Dtype> dtype) {
  const Dtype type = dtype.value_or(x.dtype());
  if (x.is_contiguous()) return empty(x.shape(), type, x.device());
  return empty_in_order(x.shape(), memory_order(x), type, x.device());
}

Array full(const Shape& shape, double value, Dtype dtype, Device device) {
  Array x = empty(shape, dtype, device);
  fill(x, value);
  return x;
}

Array zeros(const Shape& shape, Dtype dtype, Device device) {
  return full(shape, 0, dtype, device);
}

void fill(const Array& x, double value) { copy_kernels.on(x.device()).fill(x, value); }

void copy(const Array& from, const Array& to) {
  require(from.shape() == to.shape(), "copy: expected shape ", to.shape(), ", got ", from.shape());
  if (from.device() == to.device()) return copy_kernels.on(to.device()).copy(from, to);
  // Between devices only whole blocks travel: bring both ends to the same row-major form first.
  const Array source = contiguous(cast(from, to.dtype()));
  const Array target = to.is_contiguous() ? to : empty(to.shape(), to.dtype(), to.device());
  const auto bytes = static_cast<std::size_t>(source.size() * source.itemsize());
  if (source.device().is_host()) {
    driver_of(target.device())
        .copy_from_host(target.data(), source.data(), bytes, target.device().index);
  } else if (target.device().is_host()) {
    driver_of(source.device())
        .copy_to_host(target.data(), source.data(), bytes, source.device().index);
  } else if (const auto across = copy_kernels.on(target.device()).copy_across;
             across != nullptr && source.device().driver == target.device().driver) {
    across(source, target);
  } else {
    const Array staged = to_device(source, Device{});
    copy(staged, target);
  }
  if (!to.is_contiguous()) copy(target, to);
}

void join(std::span<const Array* const> xs, const Array& y, int axis) {
  const auto join_rows = copy_kernels.on(y.device()).join_rows;
  if (join_rows != nullptr && join_rows(xs, y, axis)) return;
  visit_places(xs, y, axis, [](const Array& from, const Array& to) {
    copy(from, to);
    return true;
  });
}

Array contiguous(const Array& x) {
  if (x.is_contiguous()) return x;
  Array y = empty(x.shape(), x.dtype(), x.device());
  copy(x, y);
  return y;
}

Array cast(const Array& x, Dtype dtype) {
  if (x.dtype() == dtype) return x;
  Array y = empty_like(x, dtype);
  copy(x, y);
  return y;
}

Array to_device(const Array& x, Device device) {
  if (x.device() == device) return x;
  if (device.is_meta()) return empty_in_order(x.shape(), memory_order(x), x.dtype(), device);
  Array y = empty(x.shape(), x.dtype(), device);
  copy(x, y);
  return y;
}

Array copy_of(const Array& x) {
  Array y = empty_like(x);
  copy(x, y);
  return y;
}

double item(const Array& x) {
  require<std::invalid_argument>(x.size() == 1, "item: expected one element, got shape ",
                                 x.shape());
  const Array host = to_device(cast(x, Dtype::float64), Device{});
  return *host.as<double>();
}

}  // namespace renga
