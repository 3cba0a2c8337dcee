// Arrays as xtensor's expressions and back, for preparing and analysing data. A program that
// includes this has xtensor's headers.
#pragma once

#include <array>
#include <xtensor/xadapt.hpp>
#include <xtensor/xstrided_view.hpp>

#include "tensor/array.h"

namespace renga {

// The elements of an array of the host, of type T and with N axes, without a copy. It is valid as
// long as the array's memory is; xtensor writes to it, so the array is not one of a graph.
template <class T, std::size_t N>
auto as_xtensor(const Array& x) {
  require(x.dtype() == dtype_of<T> && x.ndim() == static_cast<int>(N) && x.device().is_host(),
          "as_xtensor: expected ", N, " axes of ", dtype_of<T>, " on the host, got ", x.shape(),
          " of ", x.dtype(), " on ", to_string(x.device()));
  std::array<std::size_t, N> shape;
  std::array<std::ptrdiff_t, N> strides;
  for (std::size_t axis = 0; axis < N; ++axis) {
    shape[axis] = static_cast<std::size_t>(x.shape(static_cast<int>(axis)));
    // xtensor wants 0 as the stride of an axis that has one element.
    strides[axis] = shape[axis] == 1 ? 0 : x.strides()[static_cast<int>(axis)] / x.itemsize();
  }
  return xt::adapt(x.as<T>(), static_cast<std::size_t>(x.size()), xt::no_ownership(), shape,
                   strides);
}

// The elements of a container or of a view of one, with its strides, without a copy. The array is
// valid as long as their memory is.
template <class E>
Array view_of(xt::xexpression<E>& expression) {
  E& e = expression.derived_cast();
  using T = std::decay_t<typename E::value_type>;
  Shape shape;
  Strides strides;
  std::int64_t first = 0, last = 0;  // bytes from the element at index 0 to those at the ends
  for (std::size_t axis = 0; axis < e.dimension(); ++axis) {
    const auto extent = static_cast<std::int64_t>(e.shape()[axis]);
    const std::int64_t stride = static_cast<std::int64_t>(e.strides()[axis]) * size_of(dtype_of<T>);
    shape.push_back(extent);
    strides.push_back(stride);
    (stride < 0 ? first : last) += stride * (extent - 1);
  }
  T* const data = e.data() + e.data_offset();
  auto* const bytes = reinterpret_cast<std::byte*>(data);
  const auto size = e.size() == 0 ? 0 : static_cast<std::size_t>(last - first) + sizeof(T);
  return {make_ref<Storage>(bytes + first, size, Device{}, [] {}), bytes, shape, strides,
          dtype_of<T>};
}

// A new array of the host with the elements of an expression.
template <class E>
Array array_of(const xt::xexpression<E>& expression) {
  const E& e = expression.derived_cast();
  using T = std::decay_t<typename E::value_type>;
  Shape shape;
  for (const auto extent : e.shape()) shape.push_back(static_cast<std::int64_t>(extent));
  const Array x = empty(shape, dtype_of<T>);
  auto to = xt::adapt(x.as<T>(), static_cast<std::size_t>(x.size()), xt::no_ownership(),
                      std::vector<std::size_t>(e.shape().begin(), e.shape().end()));
  to = e;
  return x;
}

}  // namespace renga
