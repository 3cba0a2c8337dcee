// The backward pass over the graph. Subclasses decide what happens to the gradients.
#pragma once

#include <queue>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autograd/backward.h"

namespace renga {

// A gradient has a wrong dtype: Python's TypeError.
class WrongType : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// Visits nodes in decreasing order of rank, starting from the outputs.
class Engine {
 public:
  Engine(const BackwardOptions& options, PassContext& context);
  virtual ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Adds to the gradient of `y`, which is propagated to the inputs of its creator if it `flows_on`.
  void add_root(const Variable& y, const Variable& gy, bool flows_on = true);
  void run();
  // Computes what an earlier pass has left out.
  void run(const PostponedGradients::Term& term);

 protected:
  // Whether the gradient of this input is needed.
  virtual bool needs_gradient(const VariableNode& x) const { return x.requires_grad; }
  // Called when the gradient of `x` is complete.
  virtual void on_gradient(VariableNode* x, const Variable& gx) = 0;
  // Called when a node has contributed to the gradients of its inputs.
  virtual void on_node_done(const Node&) {}
  // Whether gradients are stored in the leaves; otherwise they are returned.
  virtual bool accumulates_into_leaves() const { return false; }
  // Whether gradients that are stored in the leaves may be left out until later.
  virtual bool may_postpone() const { return false; }

  // Reports the gradient of `x`, if one was computed.
  void complete(VariableNode* x);

  const BackwardOptions options_;
  PassContext& context_;

 private:
  struct Entry {
    int rank;
    std::int64_t order;
    Ref<Node> node;
    // The highest rank first; among equals, the one visited first.
    bool operator<(const Entry& o) const {
      return rank != o.rank ? rank < o.rank : order > o.order;
    }
  };

  Variable take_gradient(VariableNode* x);
  // Includes the terms that were collected.
  Variable take_complete_gradient(VariableNode* x);
  void enqueue_creator(VariableNode* x);
  GradientSink sink(Node* node, VariableNode* x);
  void process(Node& node);
  void postpone_leaves(Node& node);
  void propagate(Node& node);
  void call_backward(Node& node);
  void check_gradient(const Node& node, int i, const Variable& gx) const;
  void keep_leaf(const Ref<VariableNode>& x);

  std::unordered_map<VariableNode*, Variable> grads_;
  CollectedTerms collected_;
  std::optional<LeafAccess> leaves_;  // of a pass that may write to where leaves keep gradients
  PostponedGradients* postponed_ = nullptr;
  std::unordered_set<Node*> seen_;
  std::priority_queue<Entry> queue_;
  std::int64_t order_ = 0;
  std::vector<Ref<VariableNode>> kept_;  // the roots, and leaves in the order of the visit
  std::unordered_set<VariableNode*> kept_leaves_;
  std::vector<Variable> gys_;
  std::vector<int> wanted_;
  std::vector<GradientSink> sinks_;  // one for each of `wanted_`
};

}  // namespace renga
