// A stretch in which libraries called from this thread start no others.
#pragma once

#include <omp.h>

namespace renga {

// oneDNN cuts its work, and with it the order of sums, by the number of threads there are. Where
// bits must not depend on that number, renga cuts the work by its shape alone, and each piece is
// computed while a OneThread lives.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace renga
