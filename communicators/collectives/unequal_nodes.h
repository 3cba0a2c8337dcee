// All-reduce over nodes that hold different numbers of ranks, or ranks in any order.
#pragma once

#include "collectives/all_reduce/algorithm_selection.h"
#include "collectives/flat_bucket.h"
#include "collectives/reduce.h"
#include "shared_memory/shared_segment.h"

namespace renga::unequal_nodes {

// Whether a vector is so long that it saves time to reduce within nodes first. Every rank is told
// the same.
bool pays(const CollectiveContext& context, all_reduce::NetworkModel network, std::int64_t bytes);

// Each node reduces the largest subtrees of the reduction whose operands are all its own, so that
// the order of the operands stays that of reduce.h. Every rank has a partition of the vector: it
// receives the other nodes' partial results, and sends its result to one rank of each. Calls must
// have been compared before.
void all_reduce(const CollectiveContext& context, SharedSegment& segment, const FlatBucket& x,
                const FlatBucket& y, Dtype dtype, ReduceOp reduction);

}  // namespace renga::unequal_nodes
