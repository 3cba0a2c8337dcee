#include "autograd/leaf_uses.h"

#include <unordered_set>

#include "autograd/node.h"

namespace renga {

std::unordered_map<const VariableNode*, int> count_leaf_uses(
    std::span<const Ref<VariableNode>> roots) {
  std::unordered_map<const VariableNode*, int> uses;
  std::vector<Node*> stack;
  std::unordered_set<Node*> seen;
  const auto push_creator = [&](const VariableNode& x) {
    if (x.creator && seen.insert(x.creator.get()).second) stack.push_back(x.creator.get());
  };
  for (const auto& root : roots) push_creator(*root);
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (const auto& x : node->inputs) {
      if (!x->requires_grad) continue;
      if (x->creator) {
        push_creator(*x);
      } else {
        ++uses[x.get()];
      }
    }
  }
  return uses;
}

}  // namespace renga
