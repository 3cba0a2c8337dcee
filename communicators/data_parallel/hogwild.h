// Updates without locks of parameters that the ranks of a node share.
#pragma once

#include "tensor/array.h"

namespace renga {

// x -= lr g, one element at a time and only where g is not zero; other ranks may update the same x
// meanwhile, and no update of an element is lost. `x` and `g` are contiguous, of one floating dtype
// of 4 or 8 bytes.
//
// Source: Recht et al., Hogwild!: A lock-free approach to parallelizing stochastic gradient
// descent, NIPS 2011.
void hogwild_sgd(const Array& x, const Array& g, double lr);

}  // namespace renga
