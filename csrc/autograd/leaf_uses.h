// How often a graph reads its leaves.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/variable.h"

namespace renga {

// For each leaf that requires a gradient, how many nodes before the roots read it.
std::unordered_map<const VariableNode*, int> count_leaf_uses(
    std::span<const Ref<VariableNode>> roots);

// The same, counted when it is first asked for. Among the roots, which it does not copy, may be
// leaves.
class LeafUses {
 public:
  using Counts = std::unordered_map<const VariableNode*, int>;

  explicit LeafUses(const std::vector<Ref<VariableNode>>& roots) : roots_(&roots) {}
  explicit LeafUses(Counts counts) : roots_(nullptr), counts_(std::move(counts)) {}

  int of(const VariableNode& x) {
    if (!counts_) counts_ = count_leaf_uses(*roots_);
    const auto found = counts_->find(&x);
    return found == counts_->end() ? 0 : found->second;
  }

 private:
  const std::vector<Ref<VariableNode>>* const roots_;
  std::optional<Counts> counts_;
};

}  // namespace renga
