// Norms of gradients and parameters.
#pragma once

#include "tensor/array.h"

namespace renga {

// The sum of the squares of a float array of the host. Blocks of 512 elements, in the order of
// memory, are summed in the type they are computed in, and the blocks in double: in one float sum a
// large element would hide small ones that are not hidden where another rank has them.
double squared_norm(const Array& x);

}  // namespace renga
