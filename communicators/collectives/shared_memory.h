// Collectives of ranks that share memory, through the buffers of a shared segment or in windows.
#pragma once

#include <memory>

#include "collectives/collectives.h"
#include "collectives/flat_bucket.h"

namespace renga::shared_memory {

// Up to this size every rank reduces the whole vector, which is faster than a second barrier.
inline constexpr std::int64_t kSmallBytes = std::int64_t{1} << 14;

// Reduces at most kSmallBytes of contiguous memory in place, with one barrier.
void all_reduce_small(const CollectiveContext& context, SharedSegment& segment, std::byte* x,
                      std::int64_t bytes, Dtype dtype, ReduceOp reduction);

// Each rank reduces its partition of each chunk; the others copy it from its buffer.
void all_reduce(const CollectiveContext& context, SharedSegment& segment, const FlatBucket& x,
                const FlatBucket& y, Dtype dtype, ReduceOp reduction);

// Makes the collectives of ranks that share `segment`.
std::unique_ptr<HostCollectives> collectives(SharedSegment& segment);

}  // namespace renga::shared_memory
