#include "autograd/deferred.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "autograd/backward.h"

namespace renga {
namespace {

// All variables whose arrays are deferred, with the threads that did so.
std::mutex mutex;
std::unordered_map<const VariableBody*, std::thread::id> waiting;
std::atomic<std::size_t> count = 0;

void wait(const VariableBody* body) {
  const std::lock_guard lock(mutex);
  waiting.emplace(body, std::this_thread::get_id());
  count = waiting.size();
}

void forget(const VariableBody* body) {
  const std::lock_guard lock(mutex);
  waiting.erase(body);
  count = waiting.size();
}

Ref<const VariableBody> next_of_this_thread() {
  const std::lock_guard lock(mutex);
  for (const auto& [body, thread] : waiting) {
    if (thread == std::this_thread::get_id()) return Ref<const VariableBody>(body);
  }
  return nullptr;
}

}  // namespace

bool is_unshared(const Array& x) {
  return x.storage()->use_count() == 1 && !x.storage()->is_borrowed();
}

void compute_deferred() {
  if (count == 0) return;
  while (const auto body = next_of_this_thread()) body->array();
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
