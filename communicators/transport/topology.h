// A rank's position among all ranks and within its node.
#pragma once

#include <vector>

namespace renga {

struct Topology {
  int rank = 0;
  int size = 1;
  int intra_rank = 0;  // within the node
  int intra_size = 1;
  int inter_rank = 0;  // which node
  int inter_size = 1;
  // There is one node, or every node holds the same power of two of consecutive ranks. Then the
  // operands of each node are one subtree of a reduction.
  bool uniform_nodes = true;
  std::vector<int> nodes = {0};  // the node of each rank, by its inter_rank
};

// The topology as `rank` sees it. Ranks with the same number in `nodes` are on one node; nodes are
// numbered in the order of their first ranks.
Topology topology_of(int rank, const std::vector<int>& nodes);

}  // namespace renga
