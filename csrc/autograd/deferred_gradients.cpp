#include "autograd/deferred_gradients.h"

#include <utility>

#include "autograd/thread_state.h"

namespace renga {

namespace {

class NotDeferring {
 public:
  NotDeferring() : previous_(std::exchange(thread_state.deferred_gradients, nullptr)) {}
  ~NotDeferring() { thread_state.deferred_gradients = previous_; }
  NotDeferring(const NotDeferring&) = delete;
  NotDeferring& operator=(const NotDeferring&) = delete;

 private:
  DeferredGradients* const previous_;
};

}  // namespace

void set_deferred_gradients(DeferredGradients* deferred) {
  thread_state.deferred_gradients = deferred;
}

void DeferredGradients::set_urgent(const std::vector<Variable>& leaves) {
  urgent_.clear();
  for (const Variable& leaf : leaves) urgent_.insert(leaf.node().get());
}

void DeferredGradients::add(Term term) {
  ++leaves_[term.node->inputs[term.input].get()];
  terms_.push_back(std::move(term));
}

void DeferredGradients::compute() {
  // Gradients that are accumulated meanwhile are those of the terms.
  const NotDeferring scope;
  while (!terms_.empty()) {
    const Term term = std::move(terms_.front());
    terms_.pop_front();
    const auto found = leaves_.find(term.node->inputs[term.input].get());
    if (--found->second == 0) leaves_.erase(found);
    accumulate_gradient(term);
  }
}

}  // namespace renga
