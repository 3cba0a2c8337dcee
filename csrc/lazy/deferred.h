// Deferred arrays: computed on first access.
//
// An operation may return a Variable whose array is allocated but not computed, with the pending
// computation. The next operation may fuse with it and compute both in one pass; every other access
// calls array(), which computes first. Two rules keep this invisible: the inputs of a pending
// computation are not written to before it runs, by any thread (see UnsharedMemory and expose), and
// nothing is deferred while function hooks are installed, since they measure each operation.
#pragma once

#include <atomic>
#include <initializer_list>
#include <mutex>

#include "tensor/array.h"

namespace renga {

// The computation of one array, which runs at most once.
class Deferred : public RefCounted {
 public:
  // `inputs` are the arrays that compute() reads; undefined ones are ignored.
  Deferred(Array y, std::initializer_list<Array> inputs);
  // Reads what `source` computes, or the inputs of `source`, and `other`, which may be undefined.
  Deferred(Array y, const Deferred& source, const Array& other);

  // Where the elements are computed; they may be pending.
  const Array& array() const { return y_; }

  // Computes the array, or waits for the thread that is computing it.
  void run() const;
  bool is_done() const { return done_.load(std::memory_order_acquire); }

  // Between watch() and unwatch() or the end of run(), expose() of an input calls run().
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

// Whether `x` is the only array over its memory, and the core allocated that memory.
bool is_unshared(const Array& x);

// Whether no code outside the core has had access to the memory of `x`. The core writes only to
// memory that nothing else refers to, so a pending computation may read `x`.
bool is_internal(const Array& x);

// Must be called before the memory of `x` is handed to code that may write to it. Runs every
// pending computation that reads this memory, whatever thread deferred it.
void expose(const Array& x);

// Remembers that an array was unshared, and tells whether it has not been exposed since: then
// nothing writes to it without calling expose() first.
class UnsharedMemory {
 public:
  explicit UnsharedMemory(const Array& x)
      : unshared_(is_unshared(x)), exposures_(x.storage()->exposures()), storage_(x.storage()) {}
  bool holds() const { return unshared_ && storage_->exposures() == exposures_; }

 private:
  const bool unshared_;
  const std::uint32_t exposures_;
  const Ref<Storage> storage_;
};

}  // namespace renga
