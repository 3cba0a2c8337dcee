// Where a rank stands among all ranks, among those of its node, and which node that is.
#pragma once

#include <vector>

namespace renga {

struct Placement {
  int rank = 0;
  int size = 1;
  int intra_rank = 0;
  int intra_size = 1;
  int inter_rank = 0;
  int inter_size = 1;
  // Whether there is one node, or every node holds the same power of two of neighbouring ranks:
  // then a reduction within nodes first keeps the order of the operands.
  bool in_rows = true;
};

// Of `rank`, where ranks with the same number in `nodes` share a node. Nodes are counted in the
// order of their first ranks.
Placement place_on_nodes(int rank, const std::vector<int>& nodes);

}  // namespace renga
