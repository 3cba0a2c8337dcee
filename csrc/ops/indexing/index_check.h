// Checks of indices that come from the caller.
#pragma once

#include <optional>

#include "tensor/array.h"

namespace renga {

// Returns a copy on `device` as contiguous int64, whose elements are from 0 to n - 1 or equal to
// `ignored`. It is a copy so that later writes to `indices` do not change it. `name` is the
// argument's. Throws InvalidType unless `indices` has an integer dtype, and std::out_of_range
// (IndexError) with the first invalid element; for indices on a CUDA device, which the host does
// not wait for, when it next waits for that device or checks indices there.
Array checked_indices(const char* op, const char* name, const Array& indices, std::int64_t n,
                      Device device, std::optional<std::int64_t> ignored = {});

// Returns such a copy of indices from -n on, where negative ones count from the end; the copy has
// them from 0 on. The host checks them.
Array wrapped_indices(const char* op, const char* name, const Array& indices, std::int64_t n,
                      Device device);

}  // namespace renga
