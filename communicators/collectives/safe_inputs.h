// Copies operands that results would overwrite.
#pragma once

#include <vector>

#include "tensor/array.h"

namespace renga {

// The operands of xs[i] -> ys[i], with copies of those that a result could overwrite before they
// are read. An operand may be identical to its result. `own` is for one operand of all results: the
// index of the result to which it may be identical.
std::vector<Array> safe_inputs(const std::vector<Array>& xs, const std::vector<Array>& ys,
                               int own = -1);

}  // namespace renga
