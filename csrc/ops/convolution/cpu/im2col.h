// Convolution of one sample after the other by im2col and a matrix product, for dtypes, axes and
// extents that oneDNN does not support.
#pragma once

#include "ops/convolution/cpu/problem.h"

namespace renga {

// All arrays of one dtype; any number of axes.
void im2col_convolve(const Problem& problem);

}  // namespace renga
