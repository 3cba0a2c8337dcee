// Arrays that are computed when somebody looks at them.
//
// An operation may return a Variable whose array has its memory but no contents yet, and say how to
// compute them. The next operation may take that up and compute both in one pass; for everybody
// else, array() computes first. So only time tells whether an array was deferred. That takes two
// things: what it is computed from must not change meanwhile (see is_unshared), and nothing is
// deferred while function hooks look on, which shall see what each operation costs.
#pragma once

#include "tensor/array.h"

namespace renga {

class Deferred : public RefCounted {
 public:
  // Writes the elements of `y`.
  virtual void compute(const Array& y) const = 0;
};

// Whether `x` is the only array over memory of the core's own: then it does not change before
// compute_deferred().
bool is_unshared(const Array& x);

// Computes all that this thread has deferred. The binding calls it before it lets Python write to
// any memory. (A thread that computed what another one is about to would take its time, and write
// to an array that the other may already have changed.)
void compute_deferred();

}  // namespace renga
