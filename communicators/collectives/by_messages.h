// Collectives made of messages between pairs of ranks: for ranks on several nodes.
#pragma once

#include <span>
#include <vector>

#include "collectives/flat.h"
#include "collectives/reduce.h"
#include "turn.h"

namespace renga::by_messages {

// In debug mode, before anything is moved: throws unless all ranks ask for the same.
void agree(const Turn& turn);

// Sends sent[r] to rank r and receives received[r] from it. All contiguous; either may be empty.
void exchange(const Turn& turn, const std::vector<Array>& sent, const std::vector<Array>& received);

// The root's `x` into everybody's, along a binomial tree.
void broadcast(const Turn& turn, const Array& x, int root);

// Every rank sums its own share of each piece in rank order and hands the result round.
void all_reduce(const Turn& turn, const Flat& x, const Flat& y, Dtype dtype, Reduction reduction);

// `x` holds one block per rank; `y` receives the reduction of this rank's blocks.
void reduce_scatter(const Turn& turn, const Flat& x, const Flat& y, Dtype dtype,
                    Reduction reduction);

}  // namespace renga::by_messages
