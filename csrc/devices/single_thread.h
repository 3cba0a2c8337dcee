// A scope in which libraries called from this thread start no other threads.
#pragma once

#include <omp.h>

namespace renga {

// oneDNN partitions its work, and with it the order of sums, by the number of threads. Where bits
// must not depend on that number, renga partitions the work by its shape alone and computes each
// block on a single thread.
class SingleThread {
 public:
  SingleThread() : previous_(omp_get_max_threads()) {
    if (previous_ != 1) omp_set_num_threads(1);
  }
  ~SingleThread() {
    if (previous_ != 1) omp_set_num_threads(previous_);
  }
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int previous_;
};

}  // namespace renga
