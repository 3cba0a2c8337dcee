// The kernel of argmax and argmin.
#pragma once

#include "ops/reduction/reduction.h"

namespace renga::reduction {

// See ReductionKernels::arg.
void arg_cpu(Reduction map, const Array& x, int axis, const Array& y);

}  // namespace renga::reduction
