// Gradients of filters by oneDNN, cut into pieces by shapes alone: the same bits on any number of
// threads.
#pragma once

#include "ops/convolution/cpu/algorithm_selection.h"
#include "ops/shape/window.h"

namespace renga {

// Arguments as of onednn_weight_grad.
void direct_weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window,
                        Factors factors);

}  // namespace renga
