// ReduceOp over several nodes whose ranks share memory: within each node through its shared
// segment, then between nodes by messages, in which each rank sends its partition.
#pragma once

#include "collectives/all_reduce/algorithm_selection.h"
#include "collectives/flat_bucket.h"
#include "shared_memory/shared_segment.h"

namespace renga::hierarchical {

void all_reduce(const CollectiveContext& context, SharedSegment& segment,
                all_reduce::NetworkModel network, const FlatBucket& x, const FlatBucket& y,
                Dtype dtype, ReduceOp reduction);

}  // namespace renga::hierarchical
