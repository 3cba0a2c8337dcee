// Panels of the right operand of a product: two vectors' columns of it, depth by depth.
#pragma once

#include <cstdint>

#include "ops/matmul/cpu/operands.h"

namespace renga::panels {

// The columns of b from `column` on, from depth `begin` to `end`; zeros where there are fewer.
void pack_panel(const WeightRows& b, std::int64_t column, std::int64_t begin, std::int64_t end,
                float* to);
void pack_panel(const WeightColumns& b, std::int64_t column, std::int64_t begin, std::int64_t end,
                float* to);

// The panels [first, last) of b to their places among all of them, past the caches if it `streams`:
// then `to` is at a line of them.
void pack_panels(const WeightRows& b, std::int64_t first, std::int64_t last, bool streams,
                 float* to);
void pack_panels(const WeightColumns& b, std::int64_t first, std::int64_t last, bool streams,
                 float* to);

}  // namespace renga::panels
