// Fusions: rewrites of an operation whose input is a deferred array.
//
// The operation owns a registry and offers each call to it. The family that deferred the array
// registers a rewrite, which recognizes its own deferred arrays and computes both operations in one
// pass. So an operation does not depend on the families that it is fused with.
#pragma once

#include <array>
#include <cstddef>

namespace renga {

template <class Signature>
class FusionRegistry;

// Result is default-constructible and has defined(). Registered at start-up, read from any thread.
template <class Result, class... Args>
class FusionRegistry<Result(Args...)> {
 public:
  using Rewrite = Result (*)(Args...);

  // Returns true, so that a static initializer can call it.
  bool add(Rewrite rewrite) {
    rewrites_.at(count_++) = rewrite;
    return true;
  }

  // The result of the first rewrite that applies; an undefined one if none does.
  Result apply(Args... args) const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (Result y = rewrites_[i](args...); y.defined()) return y;
    }
    return Result();
  }

 private:
  std::array<Rewrite, 4> rewrites_{};
  std::size_t count_ = 0;
};

}  // namespace renga
