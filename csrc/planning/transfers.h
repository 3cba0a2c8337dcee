// The tasks of an operation need this of another's.
#pragma once

#include <cstdint>
#include <vector>

#include "planning/operation.h"

namespace renga::planning {

// Part `to` needs `bytes` of what part `from` computes; 0 on the same device.
struct Transfer {
  int from;
  int to;
  std::int64_t bytes;
};

// The transfers go from the tasks of the producer of input `index` to those of the operation that
// reads it. The replica on the reader's device sends, or else one of the others. Terms of an output
// are sent to be added up where they are read; where several tasks read the same sum, as many bytes
// are sent as in a reduce-scatter and an all-gather between them.
std::vector<Transfer> forward_transfers(const Operation& producer, const Configuration& source,
                                        const Operation& reader, const Configuration& target,
                                        std::size_t index);

// The gradients go from the tasks of the reader to those of the producer, likewise.
std::vector<Transfer> backward_transfers(const Operation& producer, const Configuration& source,
                                         const Operation& reader, const Configuration& target,
                                         std::size_t index);

}  // namespace renga::planning
