// Collectives made of messages between pairs of ranks: for ranks on several nodes.
#pragma once

#include <vector>

#include "collectives/all_reduce/choice.h"
#include "collectives/flat.h"
#include "collectives/reduce.h"
#include "turn.h"

namespace renga::by_messages {

// All but all_reduce begin by comparing the ranks' calls (see agreement.h).

// Sends sent[r] to rank r and receives received[r] from it. All contiguous; either may be empty.
void exchange(const Turn& turn, const std::vector<Array>& sent, const std::vector<Array>& received);

// The root's `x` into everybody's, along a binomial tree.
void broadcast(const Turn& turn, const Array& x, int root);

// Of what goes along with the comparison of the calls.
void all_reduce_short(const Turn& turn, const Flat& x, const Flat& y, Dtype dtype,
                      Reduction reduction);

// Piece by piece, by the given algorithm or the fastest on this network.
void all_reduce(const Turn& turn, const all_reduce::Network& network,
                std::optional<all_reduce::Algorithm> algorithm, const Flat& x, const Flat& y,
                Dtype dtype, Reduction reduction);

// `x` holds one block per rank; `y` receives the reduction of this rank's blocks.
void reduce_scatter(const Turn& turn, const Flat& x, const Flat& y, Dtype dtype,
                    Reduction reduction);

}  // namespace renga::by_messages
