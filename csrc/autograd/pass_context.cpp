#include "autograd/pass_context.h"

#include <utility>

#include "autograd/backward.h"

namespace renga {
namespace {

class NotPostponing {
 public:
  explicit NotPostponing(PassContext& context)
      : context_(context), before_(std::exchange(context.postponed, nullptr)) {}
  ~NotPostponing() { context_.postponed = before_; }
  NotPostponing(const NotPostponing&) = delete;
  NotPostponing& operator=(const NotPostponing&) = delete;

 private:
  PassContext& context_;
  PostponedGradients* const before_;
};

}  // namespace

void PostponedGradients::set_urgent(const std::vector<Variable>& leaves) {
  urgent_.clear();
  for (const Variable& leaf : leaves) urgent_.insert(leaf.node().get());
}

void PostponedGradients::add(Term term) {
  ++leaves_[term.node->inputs[term.input].get()];
  terms_.push_back(std::move(term));
}

void PostponedGradients::compute(PassContext& context) {
  // Gradients that are accumulated meanwhile are those of the terms.
  const NotPostponing scope(context);
  while (!terms_.empty()) {
    const Term term = std::move(terms_.front());
    terms_.pop_front();
    const auto found = leaves_.find(term.node->inputs[term.input].get());
    if (--found->second == 0) leaves_.erase(found);
    accumulate_gradient(term, context);
  }
}

int PassContext::add_hook(GradientReadyHook hook) {
  hooks.emplace(next_handle, std::move(hook));
  return next_handle++;
}

}  // namespace renga
