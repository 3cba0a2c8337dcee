// Optimizer updates of replicated parameters, sharded over the ranks of one node.
#pragma once

#include <vector>

#include "communicator.h"
#include "optimizers/update_rules.h"

namespace renga {

// Replaces the gradients of `updates` by their means over the ranks and applies the updates. Each
// rank does so for its partition of every parameter and writes the results into the arrays of all
// others, so each number is computed once instead of on every rank. All arrays are contiguous and
// in windows, and all ranks are on one node. Where parameters or states differ between ranks, each
// partition becomes that of the rank that updates it.
//
// Source: Rajbhandari et al., ZeRO: Memory optimizations toward training trillion parameter models,
// SC 2020, for sharding the updates.
void sharded_update(Communicator& comm, const std::vector<Update>& updates,
                    const LaunchOptions& options);

}  // namespace renga
