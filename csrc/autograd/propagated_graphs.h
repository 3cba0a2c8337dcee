// Graphs that backward() has propagated through. Once an optimizer has updated the parameters, what
// they saved for their gradients is freed: a training loop whose variable `loss` lives until the
// next loss replaces it would otherwise keep the arrays of two steps.
#pragma once

#include "autograd/variable.h"

namespace renga {

// Remembers, until the next free_propagated_graphs() of this thread, that a backward pass has
// started from `loss`. Does not keep it alive.
void remember_propagated(const Variable& loss);

// Frees what the nodes saved that only the remembered losses reach: what depends on a variable that
// somebody else holds stays as it is. The nodes stay, so that the graph can still be drawn;
// propagating through them again raises an error.
void free_propagated_graphs();

}  // namespace renga
