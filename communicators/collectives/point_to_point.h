// Collectives made of messages between pairs of ranks, for ranks that do not share memory.
#pragma once

#include <vector>

#include "collectives/all_reduce/algorithm_selection.h"
#include "collectives/flat_bucket.h"
#include "collectives/reduce.h"
#include "context/collective_context.h"

namespace renga::point_to_point {

// All but all_reduce() compare the ranks' calls first (see call_comparison.h).

// Sends sent[r] to rank r and receives received[r] from it. All are contiguous or undefined.
void all_to_allv(const CollectiveContext& context, const std::vector<Array>& sent,
                 const std::vector<Array>& received);

// Overwrites `x` by that of the root, along a binomial tree.
void broadcast(const CollectiveContext& context, const Array& x, int root);

// For vectors that fit into the first messages.
void all_reduce_small(const CollectiveContext& context, const FlatBucket& x, const FlatBucket& y,
                      Dtype dtype, Reduction reduction);

// Chunk by chunk, with `algorithm` or else the fastest on this network.
void all_reduce(const CollectiveContext& context, const all_reduce::NetworkModel& network,
                std::optional<all_reduce::Algorithm> algorithm, const FlatBucket& x,
                const FlatBucket& y, Dtype dtype, Reduction reduction);

// `x` holds one block per rank; `y` receives the reduction of the blocks of this rank.
void reduce_scatter(const CollectiveContext& context, const FlatBucket& x, const FlatBucket& y,
                    Dtype dtype, Reduction reduction);

}  // namespace renga::point_to_point
