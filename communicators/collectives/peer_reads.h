// All-reduce of ordinary arrays on one node, whose ranks read each other's memory.
//
// Nothing is staged: a rank reads the operands of its partition where they are, and then the other
// partitions of the result. Three barriers, however long the arrays are, and half of the copies of
// shared_memory::all_reduce.
#pragma once

#include <vector>

#include "collectives/reduce.h"
#include "shared_memory/shared_segment.h"

namespace renga::peer_reads {

// Whether it is worth trying: ranks may read each other's memory, and the arrays are long. Every
// rank is told the same, as all have arrays of the same shapes.
bool pays(const CollectiveContext& context, const std::vector<Array>& xs);

// Measures whether long arrays are reduced faster than through the segment's buffers. Every rank
// is told the same.
bool is_faster(const CollectiveContext& context, SharedSegment& segment);

// Reduces xs[i] into ys[i]. Does nothing and returns false on every rank if an array of one of them
// is not contiguous.
bool all_reduce(const CollectiveContext& context, SharedSegment& segment,
                const std::vector<Array>& xs, const std::vector<Array>& ys, ReduceOp reduction);

}  // namespace renga::peer_reads
