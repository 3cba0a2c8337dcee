// Collectives of ranks that share memory, through the buffers of a shared segment or in windows.
#pragma once

#include <vector>

#include "collectives/flat_bucket.h"
#include "collectives/reduce.h"
#include "shared_memory/shared_segment.h"
#include "shared_memory/windows.h"

namespace renga::shared_memory {

// Up to this size every rank reduces the whole vector, which is faster than a second barrier.
inline constexpr std::int64_t kSmallBytes = std::int64_t{1} << 14;

// Reduces at most kSmallBytes of contiguous memory in place, with one barrier.
void all_reduce_small(const CollectiveContext& context, SharedSegment& segment, std::byte* x,
                      std::int64_t bytes, Dtype dtype, Reduction reduction);

// Each rank reduces its partition of each chunk; the others copy it from its buffer.
void all_reduce(const CollectiveContext& context, SharedSegment& segment, const FlatBucket& x,
                const FlatBucket& y, Dtype dtype, Reduction reduction);

// In place, for arrays in windows: each rank reads its partition of all ranks' arrays and writes
// the result into all of them, without a copy.
void all_reduce_windows(const CollectiveContext& context, SharedSegment& segment,
                        const std::vector<Array>& xs, const std::vector<PeerPointers>& peers,
                        Reduction reduction);

// `x` holds one block per rank; `y` receives the reduction of the blocks of this rank.
void reduce_scatter(const CollectiveContext& context, SharedSegment& segment, const FlatBucket& x,
                    const FlatBucket& y, Dtype dtype, Reduction reduction);

// ys[r] receives the `x` of rank r, which has the same size.
void all_gather(const CollectiveContext& context, SharedSegment& segment, const Array& x,
                const std::vector<Array>& ys);

// received[r] receives what rank r sends to this one. Undefined arrays are empty.
void all_to_allv(const CollectiveContext& context, SharedSegment& segment,
                 const std::vector<Array>& sent, const std::vector<Array>& received);

// Overwrites `x` by that of the root.
void broadcast(const CollectiveContext& context, SharedSegment& segment, const Array& x, int root);

}  // namespace renga::shared_memory
