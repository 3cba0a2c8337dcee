#include "autograd/propagated_graphs.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "autograd/node.h"
#include "autograd/thread_state.h"

namespace renga {
namespace {

// Visits nodes after all that depend on them.
class GraphRelease {
 public:
  // Visits the creator of `x`, which nothing outside the visited part of the graph uses, once this
  // holds for all its outputs.
  void add(const VariableNode& x) {
    Node* const node = x.creator.get();
    if (node == nullptr) return;
    const auto alive =
        node->outputs.size() - static_cast<std::size_t>(std::ranges::count(node->outputs, nullptr));
    // Its outputs are its owners, and gradients that are still to be computed.
    const bool is_unused =
        ++unused_outputs_[node] == alive && node->use_count() == static_cast<long>(alive);
    if (is_unused) queue_.emplace(node->rank, node);
  }

  void run() {
    while (!queue_.empty()) {
      Node& node = *queue_.top().second;
      queue_.pop();
      node.free_saved();
      for (const auto& x : node.inputs) {
        const bool is_unused = ++uses_[x.get()] == x->use_count() && x->variable == nullptr;
        if (is_unused) add(*x);
      }
    }
  }

 private:
  std::priority_queue<std::pair<int, Node*>> queue_;  // by rank
  std::unordered_map<const Node*, std::size_t> unused_outputs_;
  std::unordered_map<const VariableNode*, long> uses_;  // by visited nodes
};

}  // namespace

void remember_propagated(const Variable& loss) {
  auto& weak = loss.node()->weak;
  if (!weak) weak = make_ref<WeakNode>(loss.node().get());
  auto& losses = thread_state.propagated;
  // A program that never updates must not fill the memory.
  if (losses.size() == losses.capacity()) {
    std::erase_if(losses, [](const auto& old) { return old->node == nullptr; });
  }
  losses.push_back(weak);
}

void free_propagated_graphs() {
  GraphRelease release;
  std::unordered_set<const VariableNode*> seen;
  for (const auto& loss : std::exchange(thread_state.propagated, {})) {
    const VariableNode* const node = loss->node;
    if (node == nullptr || !seen.insert(node).second) continue;
    // A loss has one owner: the variable that the user holds.
    if (node->use_count() == 1) release.add(*node);
  }
  release.run();
}

}  // namespace renga
