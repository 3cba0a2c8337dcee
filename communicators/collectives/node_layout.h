// A NodeLayout says which part of a reduction each node does, where nodes hold any ranks.
#pragma once

#include <vector>

#include "collectives/reduce.h"
#include "transport/topology.h"

namespace renga {

// The layout is the same on all ranks.
class NodeLayout {
 public:
  // Operands [begin, end) of the reduction, all of one node: it reduces them to a partial result.
  struct Subtree {
    int begin;
    int end;
    int node;
  };

  explicit NodeLayout(const Topology& topology);

  // The largest ones, in the order of their operands.
  const std::vector<Subtree>& subtrees() const { return subtrees_; }
  int subtrees_of(int node) const;

  int node_of(int rank) const { return nodes_[static_cast<std::size_t>(rank)]; }
  int local_rank(int rank) const { return local_ranks_[static_cast<std::size_t>(rank)]; }
  // The rank of `node` that handles there the partition of the rank `owner`. On the owner's own
  // node, that is the owner.
  int handler(int node, int owner) const;

  // Combines partial results, one for each subtree, in the order of the reduction. A call of
  // combine_two(left, right) leaves its result in `left`. Returns where the last one is.
  template <class CombineTwo>
  std::byte* combine(const std::vector<std::byte*>& partials, const CombineTwo& combine_two) const {
    std::byte* const* next = partials.data();
    return combine_range(0, static_cast<int>(nodes_.size()), next, combine_two);
  }

 private:
  void collect(int begin, int end);
  bool is_on_one_node(int begin, int end) const;

  // `next` is the next partial result.
  template <class CombineTwo>
  std::byte* combine_range(int begin, int end, std::byte* const*& next,
                           const CombineTwo& combine_two) const {
    if (is_on_one_node(begin, end)) return *next++;
    const int middle = begin + left_operands(end - begin);
    std::byte* left = combine_range(begin, middle, next, combine_two);
    combine_two(left, combine_range(middle, end, next, combine_two));
    return left;
  }

  std::vector<int> nodes_;  // of the ranks
  std::vector<std::vector<int>> ranks_;
  std::vector<int> local_ranks_;
  std::vector<Subtree> subtrees_;
};

}  // namespace renga
