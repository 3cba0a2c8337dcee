// Updates of parameters that all ranks of a board hold, each made by one of them.
#pragma once

#include <vector>

#include "collectives/board.h"
#include "collectives/window.h"
#include "optimizers/update_rules.h"

namespace renga::by_board {

// The arrays of an update, in this order: gradient, parameter, states.
std::vector<Array> arrays_of(const Update& update);

// Makes the ranks' gradients their mean, and the updates by it. Each rank does so for its share of
// every parameter and writes the results to all others': each number is computed once, instead of
// once on every rank. All arrays lie in windows, without gaps: peers[i] are those of number i of
// all updates' arrays. Where ranks differ in parameters or states, each share becomes that of the
// rank whose it is.
//
// Source: Rajbhandari et al., ZeRO (2020), for the sharing of updates.
void update(const Turn& turn, Board& board, const std::vector<Update>& updates,
            const std::vector<Peers>& peers);

}  // namespace renga::by_board
