// Images whose rows are shared out over ranks, in bands of neighbouring rows by rank.
#pragma once

#include <cstdint>
#include <memory>

#include "autograd/variable.h"
#include "communicator.h"

namespace renga {

// x with `width` elements of both neighbours along an axis: those that windows of a convolution
// reach over the edge. They are zeros at both ends of the whole. All ranks call it, and its
// gradients are exchanged in the backward pass.
Variable halo_exchange(const Variable& x, const std::shared_ptr<Communicator>& comm, int axis,
                       std::int64_t width);

}  // namespace renga
