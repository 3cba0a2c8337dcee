// Scopes in which the core does not touch Python objects: the binding releases the GIL. Without a
// binding it does nothing.
#pragma once

#include <cstdint>

namespace renga {

struct GilReleaseHooks {
  void* (*enter)() = nullptr;
  void (*leave)(void*) = nullptr;
};
extern GilReleaseHooks gil_release_hooks;

// Releases the GIL for a kernel or a wait. That costs about 100 ns, so work on fewer than
// kMinElements elements keeps it.
class GilRelease {
 public:
  static constexpr std::int64_t kMinElements = 1 << 14;

  explicit GilRelease(std::int64_t elements = kMinElements)
      : active_(elements >= kMinElements && gil_release_hooks.enter != nullptr),
        state_(active_ ? gil_release_hooks.enter() : nullptr) {}
  ~GilRelease() {
    if (active_) gil_release_hooks.leave(state_);
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  bool active_;
  void* state_;
};

}  // namespace renga
