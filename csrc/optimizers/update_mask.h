// Updates that a device decides on: where gradients have overflowed, nothing changes.
#pragma once

#include "tensor/array.h"

namespace renga {

// Two float32 numbers on a device. Unless the first is 0, the rules change nothing there. The
// second counts the updates before that changed nothing, of the `t` that were started with this
// one: rules whose step depends on t leave them out.
struct UpdateMask {
  Array values;
  double t = 0;
};

// Of this thread; without values, none. Devices that cannot mask updates ignore it.
UpdateMask& update_mask();

}  // namespace renga
