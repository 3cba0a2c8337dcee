// The element types and the way from a run-time Dtype to a C++ type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <ostream>
#include <string_view>
#include <type_traits>

#include "tensor/half.h"

namespace renga {

enum class Dtype : std::uint8_t {
  bool_,
  uint8,
  uint16,
  uint32,
  uint64,
  int8,
  int16,
  int32,
  int64,
  float16,
  bfloat16,
  float32,
  float64,
};

template <class T>
struct Type {
  using type = T;
};

// Calls visit(Type<T>{}) with the C++ type of `dtype`.
template <class Visit>
decltype(auto) visit_dtype(Dtype dtype, Visit&& visit) {
  switch (dtype) {
    case Dtype::bool_:
      return visit(Type<bool>{});
    case Dtype::uint8:
      return visit(Type<std::uint8_t>{});
    case Dtype::uint16:
      return visit(Type<std::uint16_t>{});
    case Dtype::uint32:
      return visit(Type<std::uint32_t>{});
    case Dtype::uint64:
      return visit(Type<std::uint64_t>{});
    case Dtype::int8:
      return visit(Type<std::int8_t>{});
    case Dtype::int16:
      return visit(Type<std::int16_t>{});
    case Dtype::int32:
      return visit(Type<std::int32_t>{});
    case Dtype::int64:
      return visit(Type<std::int64_t>{});
    case Dtype::float16:
      return visit(Type<float16>{});
    case Dtype::bfloat16:
      return visit(Type<bfloat16>{});
    case Dtype::float32:
      return visit(Type<float>{});
    case Dtype::float64:
      break;
  }
  return visit(Type<double>{});
}

template <class T>
inline constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <class T>
inline constexpr bool is_floating = is_half<T> || std::is_floating_point_v<T>;

// The type in which kernels compute: float for the 16-bit floats, the type itself otherwise.
template <class T>
using Compute = std::conditional_t<is_half<T>, float, T>;

template <class T>
inline constexpr Dtype dtype_of = std::is_same_v<T, bool>            ? Dtype::bool_
                                  : std::is_same_v<T, std::uint8_t>  ? Dtype::uint8
                                  : std::is_same_v<T, std::uint16_t> ? Dtype::uint16
                                  : std::is_same_v<T, std::uint32_t> ? Dtype::uint32
                                  : std::is_same_v<T, std::uint64_t> ? Dtype::uint64
                                  : std::is_same_v<T, std::int8_t>   ? Dtype::int8
                                  : std::is_same_v<T, std::int16_t>  ? Dtype::int16
                                  : std::is_same_v<T, std::int32_t>  ? Dtype::int32
                                  : std::is_same_v<T, std::int64_t>  ? Dtype::int64
                                  : std::is_same_v<T, float16>       ? Dtype::float16
                                  : std::is_same_v<T, bfloat16>      ? Dtype::bfloat16
                                  : std::is_same_v<T, float>         ? Dtype::float32
                                                                     : Dtype::float64;

inline std::int64_t size_of(Dtype dtype) {
  return visit_dtype(dtype, []<class T>(Type<T>) { return static_cast<std::int64_t>(sizeof(T)); });
}
inline bool is_float(Dtype dtype) { return dtype >= Dtype::float16; }
// Returns the dtype that numbers of a dtype are computed in: float64, or else float32.
inline Dtype wide_dtype(Dtype dtype) {
  return dtype == Dtype::float64 ? Dtype::float64 : Dtype::float32;
}

// Calls visit(Type<double>{}) or visit(Type<float>{}) for a wide dtype.
template <class Visit>
decltype(auto) visit_wide(Dtype dtype, Visit&& visit) {
  if (dtype == Dtype::float64) return visit(Type<double>{});
  return visit(Type<float>{});
}

inline bool is_activation(Dtype dtype) {
  return dtype == Dtype::bfloat16 || dtype == Dtype::float32;
}

// Whether operands of one operation may have these dtypes.
inline bool are_compatible(Dtype a, Dtype b) {
  return a == b || (is_activation(a) && is_activation(b));
}

inline constexpr std::string_view kDtypeNames[] = {
    "bool",  "uint8", "uint16",  "uint32",   "uint64",  "int8",   "int16",
    "int32", "int64", "float16", "bfloat16", "float32", "float64"};
inline std::string_view name_of(Dtype dtype) { return kDtypeNames[static_cast<int>(dtype)]; }
// None for an unknown name.
inline std::optional<Dtype> dtype_named(std::string_view name) {
  const auto found = std::ranges::find(kDtypeNames, name);
  if (found == std::end(kDtypeNames)) return {};
  return static_cast<Dtype>(found - std::begin(kDtypeNames));
}
inline std::ostream& operator<<(std::ostream& out, Dtype dtype) { return out << name_of(dtype); }

// Calls visit(type) with an integer that is as large as an element.
template <class Visit>
void visit_bits(std::int64_t itemsize, const Visit& visit) {
  if (itemsize == 1) return visit(Type<std::uint8_t>{});
  if (itemsize == 2) return visit(Type<std::uint16_t>{});
  if (itemsize == 4) return visit(Type<std::uint32_t>{});
  visit(Type<std::uint64_t>{});
}

}  // namespace renga
