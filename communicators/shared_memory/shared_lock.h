// A lock in memory that the ranks of a node share.
#pragma once

#include <pthread.h>

#include "tensor/array.h"

namespace renga {

// Its owner, a thread, may die: the next one then gets the lock.
class SharedLock {
 public:
  // Uses, and keeps, the first bytes of a window, which are a multiple of 8 bytes from its start.
  explicit SharedLock(const Array& memory);
  // One rank calls it, before any other uses the lock.
  void initialize();
  // Waits without the GIL. Signal handlers run meanwhile and may throw.
  void lock();
  void unlock();

 private:
  pthread_mutex_t* mutex() const;

  Array memory_;
};

}  // namespace renga
