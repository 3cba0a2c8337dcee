// Convolutions as cuDNN's execution plans, which are selected once for each problem and kept.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/convolution/problem.h"

namespace renga {

namespace convolution {

// The addresses of a problem's arrays have this alignment, in bytes.
inline constexpr std::int64_t kPlanAlignment = 16;

// Runs a problem of dense channels-last arrays with 2 or 3 axes of pixels, at multiples of
// kPlanAlignment, on the current stream of their device; false where cuDNN has no engine for it, or
// is not to be used.
bool run_plan(const Problem& problem);

}  // namespace convolution

// Returns how many plans are kept.
std::size_t convolution_plans();

}  // namespace renga
