#include "collectives/node_layout.h"

#include <algorithm>

namespace renga {

NodeLayout::NodeLayout(const Topology& topology)
    : nodes_(topology.nodes), ranks_(static_cast<std::size_t>(topology.inter_size)) {
  for (int r = 0; r < topology.size; ++r) {
    std::vector<int>& ranks = ranks_[static_cast<std::size_t>(node_of(r))];
    local_ranks_.push_back(static_cast<int>(ranks.size()));
    ranks.push_back(r);
  }
  collect(0, topology.size);
}

int NodeLayout::subtrees_of(int node) const {
  return static_cast<int>(std::ranges::count(subtrees_, node, &Subtree::node));
}

int NodeLayout::handler(int node, int owner) const {
  const std::vector<int>& ranks = ranks_[static_cast<std::size_t>(node)];
  return ranks[static_cast<std::size_t>(local_rank(owner)) % ranks.size()];
}

void NodeLayout::collect(int begin, int end) {
  if (is_on_one_node(begin, end)) {
    subtrees_.push_back({begin, end, node_of(begin)});
    return;
  }
  const int middle = begin + left_operands(end - begin);
  collect(begin, middle);
  collect(middle, end);
}

bool NodeLayout::is_on_one_node(int begin, int end) const {
  return std::all_of(nodes_.begin() + begin, nodes_.begin() + end,
                     [&](int node) { return node == node_of(begin); });
}

}  // namespace renga
