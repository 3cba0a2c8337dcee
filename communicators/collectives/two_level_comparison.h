// Comparison of the ranks' calls where nodes are uniform (see Topology) and their ranks share a
// segment: each rank compares with those of its node there, then with the ranks of other nodes that
// have the same local rank, by messages. That is as many messages for each rank as there are other
// nodes.
#pragma once

#include <functional>

#include "collectives/call_comparison.h"
#include "shared_memory/shared_segment.h"

namespace renga::point_to_point {

// The bytes of a rank.
using BytesOf = std::function<std::span<std::byte>(int rank)>;

// Throws CallMismatch on all ranks unless their calls match.
void compare_on_two_levels(const CollectiveContext& context, SharedSegment& segment);

// This compares, and then all ranks get block_of(r) of each rank r, whose size all of them know.
// Short blocks travel in the messages of the comparison.
void compare_and_gather_on_two_levels(const CollectiveContext& context, SharedSegment& segment,
                                      const BytesOf& block_of);

}  // namespace renga::point_to_point
