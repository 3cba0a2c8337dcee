// Processes that are forked, as by Python's multiprocessing: a child has one thread, the one that
// forked.
#pragma once

#include <mutex>

namespace renga {

// A mutex that only the forking thread has while the process forks. The child would wait forever
// for any other thread that has it. Whoever has this mutex does not wait for the GIL, which the
// forking thread may have.
class ForkMutex {
 public:
  ForkMutex();
  ~ForkMutex();
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

}  // namespace renga
