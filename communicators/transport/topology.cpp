#include "transport/topology.h"

#include <algorithm>
#include <bit>

namespace renga {

Topology topology_of(int rank, const std::vector<int>& nodes) {
  Topology topology;
  topology.rank = rank;
  topology.size = static_cast<int>(nodes.size());
  const auto node_of = [&](int r) { return nodes[static_cast<std::size_t>(r)]; };
  std::vector<int> distinct;
  for (const int node : nodes) {
    if (std::ranges::find(distinct, node) == distinct.end()) distinct.push_back(node);
  }
  topology.inter_size = static_cast<int>(distinct.size());
  topology.nodes.clear();
  for (const int node : nodes) {
    topology.nodes.push_back(
        static_cast<int>(std::ranges::find(distinct, node) - distinct.begin()));
  }
  topology.inter_rank = topology.nodes[static_cast<std::size_t>(rank)];
  topology.intra_size = static_cast<int>(std::ranges::count(nodes, node_of(rank)));
  topology.intra_rank =
      static_cast<int>(std::count(nodes.begin(), nodes.begin() + rank, node_of(rank)));

  const int ranks_per_node = topology.size / topology.inter_size;
  bool uniform = std::has_single_bit(static_cast<unsigned>(ranks_per_node));
  for (int r = 0; r < topology.size; ++r) {
    const int block = r / ranks_per_node;
    uniform = uniform && block < topology.inter_size &&
              node_of(r) == distinct[static_cast<std::size_t>(block)];
  }
  topology.uniform_nodes = topology.inter_size == 1 || uniform;
  return topology;
}

}  // namespace renga
