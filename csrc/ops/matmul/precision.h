// This header says in which precision products are computed (settings/settings.h).
#pragma once

#include <cstdint>

#include "autograd/variable.h"

namespace renga {

// The type of a kernel's operands: float32, or rounded to bfloat16. Sums are in float32.
enum class ComputeType : std::uint8_t { float32, bfloat16 };

// x, cast to bfloat16 if activations are.
Variable as_activation(const Variable& x, const char* caller = __builtin_FUNCTION());

}  // namespace renga
