#include "tensor/extents.h"

#include "devices/allocator.h"
#include "devices/cpu/memory.h"
#include "tensor/error.h"

namespace renga {

void refuse_extents(const char* op, const Shape& shape, Dtype dtype) {
  for (std::int64_t n : shape) {
    require<std::invalid_argument>(n >= 0, op, ": expected extents of at least 0, got ", shape);
  }
  fail<OutOfMemory>(op, ": expected an array of less than 2^63 bytes, got shape ", shape,
                    " and dtype ", dtype);
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
