// Conversion of scalars between dtypes.
#pragma once

#include <limits>

#include "tensor/dtype.h"

namespace renga {

inline bool is_unsigned(Dtype dtype) { return dtype >= Dtype::uint8 && dtype <= Dtype::uint64; }
// The signed integers of an unsigned dtype's width; other dtypes as they are.
inline Dtype signed_of(Dtype dtype) {
  constexpr int offset = static_cast<int>(Dtype::int8) - static_cast<int>(Dtype::uint8);
  return is_unsigned(dtype) ? static_cast<Dtype>(static_cast<int>(dtype) + offset) : dtype;
}

// Rounds toward zero. NaN and values out of range, undefined in C++, give what x86 and NumPy give:
// the least value of the 32- or 64-bit register, of which narrower ints take the low bits. The
// upper half of unsigned registers is converted by way of the lower one.
template <class Int, class Float>
RENGA_HOST_DEVICE Int truncate_to(Float v) {
  using Register = std::conditional_t<(sizeof(Int) > 4), std::int64_t, std::int32_t>;
  constexpr Register least = std::numeric_limits<Register>::min();
  constexpr auto limit = -static_cast<Float>(least);
  if constexpr (std::is_unsigned_v<Int> && sizeof(Int) == sizeof(Register)) {
    if (v >= limit) return static_cast<Int>(truncate_to<Register>(v - limit) ^ least);
  }
  return static_cast<Int>(v >= -limit && v < limit ? static_cast<Register>(v) : least);
}

template <class To, class From>
RENGA_HOST_DEVICE To convert(From v) {
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
