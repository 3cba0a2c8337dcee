// Indices that are out of range: a kernel finds them, and the host throws when it next waits for
// the device or checks other indices, so that no step waits for its indices.
#pragma once

#include <cstdint>

namespace renga::cuda {

struct IndexFault {
  const char* op;  // literals
  const char* name;
  std::int64_t n;  // indices are below
  std::int64_t value;
  int found;  // 0 until a thread sets it, which then sets the others
};

// The record of a device, in the host's memory, which kernels can write to.
IndexFault* index_fault(int device);
// Throws std::out_of_range if there is one, once.
void throw_index_fault(int device);

}  // namespace renga::cuda
