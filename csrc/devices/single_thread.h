// A scope in which libraries called from this thread start no other threads.
#pragma once

#include <omp.h>

#include <cstdint>

#include "devices/parallel.h"

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

// Calls body(i) for each i in [0, n), each alone on one of the threads. `cost` is in elementary
// operations per item.
template <class Body>
void for_each_alone(std::int64_t n, std::int64_t cost, const Body& body) {
  parallel_for(n, cost, [&](std::int64_t begin, std::int64_t end) {
    const SingleThread alone;
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

// The same where that keeps all threads busy; else one after another, each on all threads.
template <class Body>
void for_each_balanced(std::int64_t n, std::int64_t cost, const Body& body) {
  const std::int64_t threads = thread_count(n * cost);
  if (n % threads == 0 || n >= 4 * threads) return for_each_alone(n, cost, body);
  for (std::int64_t i = 0; i < n; ++i) body(i);
}

}  // namespace renga
