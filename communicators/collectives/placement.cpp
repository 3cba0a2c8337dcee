#include "collectives/placement.h"

#include <algorithm>
#include <bit>

namespace renga {

Placement place_on_nodes(int rank, const std::vector<int>& nodes) {
  Placement placement;
  placement.rank = rank;
  placement.size = static_cast<int>(nodes.size());
  const auto node_of = [&](int r) { return nodes[static_cast<std::size_t>(r)]; };
  std::vector<int> seen;
  for (const int node : nodes) {
    if (std::ranges::find(seen, node) == seen.end()) seen.push_back(node);
  }
  placement.inter_size = static_cast<int>(seen.size());
  placement.inter_rank = static_cast<int>(std::ranges::find(seen, node_of(rank)) - seen.begin());
  placement.intra_size = static_cast<int>(std::ranges::count(nodes, node_of(rank)));
  placement.intra_rank =
      static_cast<int>(std::count(nodes.begin(), nodes.begin() + rank, node_of(rank)));

  const int width = placement.size / placement.inter_size;
  bool rows = std::has_single_bit(static_cast<unsigned>(width));
  for (int r = 0; r < placement.size; ++r) {
    rows = rows && r / width < placement.inter_size &&
           node_of(r) == seen[static_cast<std::size_t>(r / width)];
  }
  placement.in_rows = placement.inter_size == 1 || rows;
  return placement;
}

}  // namespace renga
