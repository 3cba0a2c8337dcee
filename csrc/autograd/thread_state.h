// The engine's state of each thread.
#pragma once

#include <vector>

#include "autograd/backward.h"
#include "autograd/deferred_gradients.h"
#include "autograd/gradient_buffer.h"
#include "autograd/gradient_sum.h"

namespace renga {

struct ThreadState {
  int backprop_enabled = -1;  // 0, 1, or -1: the process's default
  int backward_depth = 0;     // backward passes running, one inside the other
  BackwardObserver backward_observer = nullptr;
  Node* current_node = nullptr;  // whose backward() runs
  std::vector<Ref<Node>>* pending_release = nullptr;
  LeafUses* leaf_uses = nullptr;  // nullptr where no gradient is written to where leaves keep them
  const VariableNode* gradient_leaf = nullptr;      // whose first gradient in this pass is computed
  CollectedTerms* collected_sums = nullptr;         // nullptr where every term is computed at once
  DeferredGradients* deferred_gradients = nullptr;  // of backward() calls
  std::vector<Ref<WeakNode>> propagated;            // losses of backward() calls
};
extern constinit thread_local ThreadState thread_state;

}  // namespace renga
