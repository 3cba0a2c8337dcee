// How a way back follows the graph. What it does with the gradients that it finds, its kinds know.
#pragma once

#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autograd/backward.h"

namespace renga {

// How many ways back are open on this thread: a function may start one on its own way back.
int open_walks();

// Follows the graph from the outputs, a node's turn coming when all nodes of higher rank are done.
class Walk {
 public:
  explicit Walk(const BackwardOptions& options);
  virtual ~Walk();
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  void start(const Variable& y, const Variable& gy);
  void run();

 protected:
  // Whether the gradient of this input is asked for.
  virtual bool wants(const VariableNode& x) const { return x.requires_grad; }
  // The gradient of `x` is complete; undefined when nothing reached it.
  virtual void finished(VariableNode* x, const Variable& gx) = 0;
  // A node's edges into its inputs are used up.
  virtual void used(const Node&) {}
  // Whether gradients stay with the leaves; otherwise they are handed out.
  virtual bool keeps_gradients() const { return false; }

  void finish(VariableNode* x);

  const BackwardOptions options_;

 private:
  struct Entry {
    int rank;
    std::int64_t order;
    Ref<Node> node;
    // The highest rank first, and among equals the one met first.
    bool operator<(const Entry& o) const {
      return rank != o.rank ? rank < o.rank : order > o.order;
    }
  };

  Variable take(VariableNode* x);
  void visit(VariableNode* x);
  void step(Node& node);
  void propagate(Node& node);
  void call(Node& node);
  void check(const Node& node, int i, const VariableNode& x) const;
  void keep_leaf(const Ref<VariableNode>& x);

  std::unordered_map<VariableNode*, Variable> grads_;
  std::unordered_set<Node*> seen_;
  std::priority_queue<Entry> queue_;
  std::int64_t order_ = 0;
  std::vector<Ref<VariableNode>> keep_;  // leaves met, in order, and the outputs started from
  std::unordered_set<VariableNode*> kept_;
  std::vector<Variable> gys_, gxs_;
  std::vector<int> wanted_;
};

}  // namespace renga
