// Marks stretches in which the core touches nothing of Python's: the binding lends the interpreter
// lock to other threads meanwhile. Without a binding it does nothing.
#pragma once

#include <cstdint>

namespace renga {

struct LongWorkHooks {
  void* (*enter)() = nullptr;
  void (*leave)(void*) = nullptr;
};
extern LongWorkHooks long_work_hooks;

// Held around a kernel or a wait. Handing the lock over costs about 100 ns, so work that touches
// fewer than `worth` elements keeps it.
class LongWork {
 public:
  static constexpr std::int64_t worth = 1 << 14;

  explicit LongWork(std::int64_t elements = worth)
      : active_(elements >= worth && long_work_hooks.enter != nullptr),
        state_(active_ ? long_work_hooks.enter() : nullptr) {}
  ~LongWork() {
    if (active_) long_work_hooks.leave(state_);
  }
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;

 private:
  bool active_;
  void* state_;
};

}  // namespace renga
