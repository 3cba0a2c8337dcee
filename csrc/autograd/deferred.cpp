#include "autograd/deferred.h"

#include <atomic>
#include <mutex>
#include <unordered_set>

#include "autograd/backward.h"

namespace renga {
namespace {

// All variables whose arrays are deferred.
std::mutex mutex;
std::unordered_set<const VariableBody*> waiting;
std::atomic<std::size_t> count = 0;

void wait(const VariableBody* body) {
  const std::lock_guard lock(mutex);
  waiting.insert(body);
  count = waiting.size();
}

void forget(const VariableBody* body) {
  const std::lock_guard lock(mutex);
  waiting.erase(body);
  count = waiting.size();
}

Ref<const VariableBody> any() {
  const std::lock_guard lock(mutex);
  return waiting.empty() ? nullptr : Ref<const VariableBody>(*waiting.begin());
}

}  // namespace

bool is_unshared(const Array& x) {
  return x.storage()->use_count() == 1 && !x.storage()->is_borrowed();
}

void compute_deferred() {
  while (count > 0) {
    if (const auto body = any()) body->array();
  }
}

void VariableBody::defer(Ref<const Deferred> deferred) {
  if (has_backward_observer()) return deferred->compute(array_);
  deferred_ = std::move(deferred);
  wait(this);
}

void VariableBody::compute() const {
  const Ref<const Deferred> deferred = deferred_;
  deferred->compute(array_);
  drop_deferred();
}

void VariableBody::drop_deferred() const {
  if (!deferred_) return;
  forget(this);
  deferred_ = nullptr;
}

}  // namespace renga
