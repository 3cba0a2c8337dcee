// Operands of one operation are on one device: kernels read their addresses.
#pragma once

#include <stdexcept>

#include "devices/device.h"
#include "tensor/error.h"

namespace renga {

// Requires both devices to be one, unless one is kMeta, whose arrays have no addresses. The texts
// are made for an error only.
inline void require_one_device(const char* op, Device a, Device b) {
  if (a == b || a.is_meta() || b.is_meta()) return;
  fail<std::invalid_argument>(op, ": expected arrays on one device, got ", to_string(a), " and ",
                              to_string(b));
}

// Requires all arrays or Variables of a range to be on one device.
template <class Range>
void require_one_device(const char* op, const Range& operands) {
  for (const auto& x : operands) require_one_device(op, operands[0].device(op), x.device(op));
}

}  // namespace renga
