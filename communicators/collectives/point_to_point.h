// Collectives made of messages between pairs of ranks, for ranks that do not all share memory.
#pragma once

#include <memory>

#include "collectives/collectives.h"
#include "collectives/flat_bucket.h"

namespace renga::point_to_point {

// Reduces chunk by chunk, with `algorithm` or else the fastest on this network. Calls must have
// been compared before.
void all_reduce(const CollectiveContext& context, const all_reduce::NetworkModel& network,
                std::optional<all_reduce::Algorithm> algorithm, const FlatBucket& x,
                const FlatBucket& y, Dtype dtype, ReduceOp reduction);

// Makes the collectives of ranks that only send messages.
std::unique_ptr<HostCollectives> messages();
// Makes the same collectives, but they reduce on two levels where that is faster: within nodes,
// whose ranks share `segment`, then between them.
std::unique_ptr<HostCollectives> two_levels(SharedSegment& segment);

}  // namespace renga::point_to_point
