// Whether a result is written where an operand is still to be read.
#pragma once

#include <vector>

#include "tensor/array.h"

namespace renga {

// Whether the memory from the first to the last element of one of these meets that of another.
bool overlap(const std::vector<Array>& xs);

// The operands of xs[i] -> ys[i], some of them as copies: of those whose memory a result may
// overwrite before they are read. An operand may be its own result. Where `own` is given, it is the
// number of the result that the only operand may be.
std::vector<Array> safe_inputs(const std::vector<Array>& xs, const std::vector<Array>& ys,
                               int own = -1);

}  // namespace renga
