// Reduction over nodes whose ranks share memory: within each node by its board, between nodes by
// messages, of which each rank sends those of its share.
#pragma once

#include "collectives/all_reduce/choice.h"
#include "collectives/board.h"
#include "collectives/flat.h"

namespace renga::by_nodes {

void all_reduce(const Turn& turn, Board& board, all_reduce::Network network, const Flat& x,
                const Flat& y, Dtype dtype, Reduction reduction);

}  // namespace renga::by_nodes
