// Indices that come from the caller: labels, ids, places.
#pragma once

#include <optional>

#include "tensor/array.h"

namespace renga {

// A copy as contiguous int64, of which each element is from 0 to n - 1 or equal to `ignored`. The
// copy is the operation's own: what the caller later writes into `indices` changes nothing.
// Throws InvalidType unless `indices` has an integer dtype, and std::out_of_range (IndexError) with
// the first element that lies outside; `name` is the argument's.
Array checked_indices(const char* op, const char* name, const Array& indices, std::int64_t n,
                      std::optional<std::int64_t> ignored = {});

}  // namespace renga
