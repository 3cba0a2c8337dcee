// A program says here what it wants of its backward passes besides the gradients: hooks, places for
// gradients, gradients that wait. A thread's passes share one context, which is handed to
// backward().
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autograd/gradient_sink.h"
#include "autograd/node.h"

namespace renga {

struct PassContext;

// Gradients of leaves that are computed after a backward pass: what another process waits for, as
// the stage before in a pipeline for the gradient of its output, is there earlier.
class PostponedGradients {
 public:
  // A pass has left out this term: the gradient of an input of `node`, whose output has `gy`.
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
  void compute(PassContext& context);

 private:
  std::deque<Term> terms_;
  std::unordered_map<const VariableNode*, int> leaves_;  // how many terms of each wait
  std::unordered_set<const VariableNode*> urgent_;       // only compared
};

// Called with a leaf as soon as its gradient is complete in backward().
using GradientReadyHook = std::function<void(const Variable& leaf)>;

// Called before (`done` = false) and after each node's backward, for function hooks.
using BackwardObserver = void (*)(Node& node, std::span<const Variable> gys, bool done);

// An output from which the next pass starts besides its own, and an input that it has to reach: a
// pending communication. Other ranks wait for it, so it runs even if the loss does not depend on
// it.
struct ExtraRoot {
  Variable output, input;
};

// A pass that runs inside of another one, as a function's backward may call backward(), has
// gradients, buffers and the observer only: it may add to gradients that the outer pass completes.
struct PassContext {
  int running = 0;  // passes, one inside of the other
  int next_handle = 0;
  BackwardObserver observer = nullptr;
  std::map<int, GradientReadyHook> hooks;  // by the handles of who added them
  GradientBuffers buffers;
  PostponedGradients* postponed = nullptr;       // where passes leave gradients; nullptr: nowhere
  std::map<std::string, ExtraRoot> extra_roots;  // by name; the next pass takes all

  // Returns a handle for `hooks`.
  int add_hook(GradientReadyHook hook);
};

}  // namespace renga
