// Arrays that are computed when somebody looks at them.
//
// An operation may return a Variable whose array has its memory but no contents yet, and say how to
// compute them. The next operation may take that up and compute both in one pass; for everybody
// else, array() computes first. So only time tells whether an array was deferred. That takes two
// things: nobody may write to the memory that it is computed from before it is computed, by
// whatever thread (see UnsharedMemory and expose), and nothing is deferred while function hooks
// look on, which shall see what each operation costs.
#pragma once

#include <atomic>
#include <initializer_list>
#include <mutex>

#include "tensor/array.h"

namespace renga {

// The computation of one array, which runs at most once.
class Deferred : public RefCounted {
 public:
  // `inputs` are the arrays that compute() reads.
  Deferred(Array y, std::initializer_list<Array> inputs);

  // Writes the elements of the array, or waits for the thread that does so already.
  void run() const;
  bool is_done() const { return done_.load(std::memory_order_acquire); }

  // From watch() until it has run or unwatch() is called, expose() of an input runs it.
  void watch() const;
  void unwatch() const;

 protected:
  virtual void compute(const Array& y) const = 0;

 private:
  const Array y_;
  SmallVector<Ref<Storage>> inputs_;
  mutable std::once_flag once_;
  mutable std::atomic<bool> done_ = false;
};

// Whether `x` is the only array over memory of the core's own.
bool is_unshared(const Array& x);

// To be called before the memory of `x` is given to anybody who may write to it; the caller holds
// an array over it. Runs all that is deferred and reads this memory, of every thread.
void expose(const Array& x);

// Whether an array was unshared at first and has not been exposed since. Then nobody can write to
// it without calling expose().
class UnsharedMemory {
 public:
  explicit UnsharedMemory(const Array& x)
      : unshared_(is_unshared(x)), shows_(x.storage()->shows()), storage_(x.storage()) {}
  bool holds() const { return unshared_ && storage_->shows() == shows_; }

 private:
  const bool unshared_;
  const std::uint32_t shows_;
  const Ref<Storage> storage_;
};

}  // namespace renga
