// Checks of requested shapes, before memory is allocated or addresses are computed.
#pragma once

#include <cstdint>
#include <limits>

#include "devices/device.h"
#include "tensor/dims.h"
#include "tensor/dtype.h"

namespace renga {

// Sum and product of non-negative numbers, saturating at the largest int64.
inline std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
  return __builtin_add_overflow(a, b, &a) ? std::numeric_limits<std::int64_t>::max() : a;
}
inline std::int64_t saturated_product(std::int64_t a, std::int64_t b) {
  return __builtin_mul_overflow(a, b, &a) ? std::numeric_limits<std::int64_t>::max() : a;
}

// Throws the error of checked_bytes.
[[noreturn]] void refuse_extents(const char* op, const Shape& shape, Dtype dtype);

// The bytes of an array of `shape`. Throws std::invalid_argument for an extent below 0, and
// OutOfMemory where the bytes or a stride would not fit in 63 bits; both name `op`.
inline std::int64_t checked_bytes(const char* op, const Shape& shape, Dtype dtype) {
  std::int64_t bytes = size_of(dtype);
  bool is_empty = false, is_refused = false;
  for (std::int64_t n : shape) {
    is_empty |= n == 0;
    // The strides of an empty array are those of an array with 1 in place of 0.
    is_refused |= n < 0 || __builtin_mul_overflow(bytes, n == 0 ? 1 : n, &bytes);
  }
  if (is_refused) [[unlikely]]
    refuse_extents(op, shape, dtype);
  return is_empty ? 0 : bytes;
}

// Also throws OutOfMemory where an array on the host is larger than its whole memory.
std::int64_t require_memory(const char* op, const Shape& shape, Dtype dtype, Device device = {});

}  // namespace renga
