// Gradients of leaves that are computed after a backward pass: what another process waits for, as
// the stage before in a pipeline for the gradient of its output, is there earlier.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autograd/node.h"

namespace renga {

class DeferredGradients {
 public:
  // What a pass has left out: the gradient of an input of `node`, whose output has `gy`.
  struct Term {
    Ref<Node> node;
    int input;
    Variable gy;
    std::optional<double> loss_scale;
  };

  // The leaves whose gradients the next passes do not leave out.
  void set_urgent(const std::vector<Variable>& leaves);
  bool is_urgent(const VariableNode& x) const { return urgent_.contains(&x); }

  void add(Term term);
  // Whether a term of this leaf waits.
  bool has(const VariableNode& leaf) const { return leaves_.contains(&leaf); }
  std::size_t size() const { return terms_.size(); }

  // Adds all terms to the gradients of their leaves, in the order in which the passes would have.
  void compute();

 private:
  std::deque<Term> terms_;
  std::unordered_map<const VariableNode*, int> leaves_;  // how many terms of each wait
  std::unordered_set<const VariableNode*> urgent_;       // only compared
};

// Where this thread's backward() calls leave gradients of leaves; nullptr: they compute them. They
// compute those of leaves that the graph reads several times, and all of them in passes that are
// recorded or nested, or whose hooks are called when gradients are complete.
void set_deferred_gradients(DeferredGradients* deferred);

// Whether backward() of a node computes the gradients of its inputs, of one output, one by one.
bool has_separate_gradients(const Node& node);

// Computes a term that a pass has left out, and adds it to the gradient of its leaf.
void accumulate_gradient(const DeferredGradients::Term& term);

}  // namespace renga
