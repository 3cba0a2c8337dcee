// Reducers say what a reduction folds into what, for the kernels of all devices.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "devices/host_device.h"
#include "tensor/dtype.h"

namespace renga::reducers {

template <class T>
RENGA_HOST_DEVICE bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>) return v != v;
  return false;
}

template <class T>
using Wide = std::conditional_t<is_floating<T>, double, std::int64_t>;

template <class T>
using Total = std::conditional_t<std::is_same_v<T, bfloat16>, float, T>;

template <class T>
struct Sum {
  static constexpr bool compares = false;
  using Value = Wide<T>;
  using Result = Total<T>;
  static constexpr Value start = 0;
  RENGA_HOST_DEVICE static Value fold(Value a, Value b) { return a + b; }
};

template <class T>
struct SumOfSquares : Sum<T> {
  using typename Sum<T>::Value;
  RENGA_HOST_DEVICE static Value element(Value v) { return v * v; }
};

template <class T>
struct Prod {
  static constexpr bool compares = false;
  using Value = Wide<T>;
  using Result = Total<T>;
  static constexpr Value start = 1;
  RENGA_HOST_DEVICE static Value fold(Value a, Value b) { return a * b; }
};

template <class T>
struct Max {
  static constexpr bool compares = true;
  using Value = Compute<T>;
  using Result = T;
  static constexpr Value start = std::numeric_limits<Value>::has_infinity
                                     ? -std::numeric_limits<Value>::infinity()
                                     : std::numeric_limits<Value>::lowest();
  // NaN propagates. Without branches, the compiler makes vectors of it.
  RENGA_HOST_DEVICE static Value fold(Value a, Value b) { return (a > b) | is_nan(a) ? a : b; }
};

template <class T>
struct Min {
  static constexpr bool compares = true;
  using Value = Compute<T>;
  using Result = T;
  static constexpr Value start = std::numeric_limits<Value>::has_infinity
                                     ? std::numeric_limits<Value>::infinity()
                                     : std::numeric_limits<Value>::max();
  RENGA_HOST_DEVICE static Value fold(Value a, Value b) { return (a < b) | is_nan(a) ? a : b; }
};

// Returns what R folds of an element.
template <class R>
RENGA_HOST_DEVICE typename R::Value element(typename R::Value v) {
  if constexpr (requires { R::element(v); }) {
    return R::element(v);
  } else {
    return v;
  }
}

// Booleans are compared as the bytes 0 and 1.
inline Dtype comparable(Dtype dtype) { return dtype == Dtype::bool_ ? Dtype::uint8 : dtype; }

// Calls visit(Type<R>{}) with the reducer of a map for arrays of dtype T.
template <class T, class Map, class Visit>
void visit_reducer(Map map, const Visit& visit) {
  switch (map) {
    case Map::sum:
      return visit(Type<Sum<T>>{});
    case Map::sum_of_squares:
      return visit(Type<SumOfSquares<T>>{});
    case Map::prod:
      return visit(Type<Prod<T>>{});
    case Map::max:
      return visit(Type<Max<T>>{});
    case Map::min:
      return visit(Type<Min<T>>{});
  }
}

}  // namespace renga::reducers
