// Collectives over several nodes whose ranks share memory: within each node through its shared
// segment, between nodes by messages of the ranks that have the same local rank. Each byte that a
// node needs goes to it once. Nodes are uniform (see Topology), and calls must have been compared
// before.
//
// Long vectors go in pieces: while the messages of one are in flight, the node works on others.
#pragma once

#include "collectives/all_reduce/algorithm_selection.h"
#include "collectives/flat_bucket.h"
#include "shared_memory/shared_segment.h"

namespace renga::hierarchical {

void all_reduce(const CollectiveContext& context, SharedSegment& segment,
                all_reduce::NetworkModel network, const FlatBucket& x, const FlatBucket& y,
                Dtype dtype, ReduceOp reduction);

// In the other two, so many ranks have a cache line each in a buffer of the segment.
inline constexpr int kMostRanks = SharedSegment::kBufferBytes / 64;

// `x` holds one block for each rank, of the size of `y`.
void reduce_scatter(const CollectiveContext& context, SharedSegment& segment, const FlatBucket& x,
                    const FlatBucket& y, Dtype dtype, ReduceOp reduction);

// ys[r] has the size of `x` of rank r.
void all_gather(const CollectiveContext& context, SharedSegment& segment, const FlatBucket& x,
                const std::vector<FlatBucket>& ys);

}  // namespace renga::hierarchical
