// Conversion of scalars between dtypes.
#pragma once

#include <limits>

#include "tensor/dtype.h"

namespace renga {

// Rounds toward zero. NaN and values out of range, undefined in C++, give what x86 and NumPy give:
// the least value of the 32- or 64-bit register, of which smaller ints take the low bits.
template <class Int, class Float>
Int truncate_to(Float v) {
  using Register = std::conditional_t<(sizeof(Int) > 4), std::int64_t, std::int32_t>;
  constexpr Register least = std::numeric_limits<Register>::min();
  constexpr auto limit = -static_cast<Float>(least);
  return static_cast<Int>(v >= -limit && v < limit ? static_cast<Register>(v) : least);
}

template <class To, class From>
To convert(From v) {
  if constexpr (std::is_same_v<From, To>) {
    return v;
  } else if constexpr (is_half<From>) {
    return convert<To>(static_cast<float>(v));
  } else if constexpr (is_half<To>) {
    return To(static_cast<float>(v));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> &&
                       !std::is_same_v<To, bool>) {
    return truncate_to<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

}  // namespace renga
