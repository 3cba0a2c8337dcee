#include "tensor/extents.h"

#include "devices/allocator.h"
#include "devices/cpu/memory.h"
#include "tensor/error.h"

namespace renga {

std::int64_t checked_bytes(const char* op, const Shape& shape, Dtype dtype) {
  std::int64_t bytes = size_of(dtype);
  bool is_empty = false, is_negative = false, overflows = false;
  for (std::int64_t n : shape) {
    is_empty |= n == 0;
    is_negative |= n < 0;
    // The strides of an empty array are those of an array with 1 in place of 0.
    overflows |= __builtin_mul_overflow(bytes, n == 0 ? 1 : n, &bytes);
  }
  require<std::invalid_argument>(!is_negative, op, ": expected extents of at least 0, got ", shape);
  require<OutOfMemory>(!overflows, op, ": expected an array of less than 2^63 bytes, got shape ",
                       shape, " and dtype ", dtype);
  return is_empty ? 0 : bytes;
}

std::int64_t require_memory(const char* op, const Shape& shape, Dtype dtype, Device device) {
  const std::int64_t bytes = checked_bytes(op, shape, dtype);
  // Other devices say themselves what does not fit, without harm.
  if (!device.is_host()) return bytes;
  const std::int64_t memory = total_memory();
  require<OutOfMemory>(bytes <= memory, op, ": expected an array that fits in the ", memory,
                       " bytes of memory of this machine, got shape ", shape, " and dtype ", dtype,
                       ", which take ", bytes);
  return bytes;
}

}  // namespace renga
