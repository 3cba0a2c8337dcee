// Receives of messages whose sizes only their senders know.
//
// Open MPI overruns memory where a long message comes for a shorter posted receive, and does not
// take the receive back. Here a receive is posted when its message is there and has its size.
#pragma once

#include <mpi.h>

#include <atomic>
#include <list>
#include <memory>
#include <mutex>

#include "transport.h"

namespace renga {

class MatchedReceives {
 public:
  explicit MatchedReceives(MPI_Comm comm) : comm_(comm) {}

  // The messages from one rank with one tag go to the receives in the order of these calls.
  std::unique_ptr<Transfer> start(void* data, std::int64_t bytes, int from, int tag);
  // Takes what has come. Called whenever a rank waits, by any thread.
  void advance();

 private:
  struct Receive;
  class Matched;
  // Whether all of the message has been matched.
  bool is_matched(const Receive& receive);
  void forget(const Receive& receive);
  void match(Receive& receive);

  MPI_Comm comm_;
  std::mutex mutex_;
  std::list<std::shared_ptr<Receive>> waiting_;
  std::atomic<bool> empty_ = true;
};

}  // namespace renga
