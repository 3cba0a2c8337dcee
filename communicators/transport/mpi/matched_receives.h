// Receives of messages whose sizes only their senders know, by matched probes.
//
// If a message is longer than a posted receive, Open MPI writes past the end of the buffer. So a
// receive is posted only after its message has been probed and has the expected size.
#pragma once

#include <mpi.h>

#include <atomic>
#include <list>
#include <memory>
#include <mutex>

#include "transport/transport.h"

namespace renga {

class MatchedReceives {
 public:
  explicit MatchedReceives(MPI_Comm comm) : comm_(comm) {}

  // Messages from one rank with one tag are matched in the order of these calls.
  std::unique_ptr<Transfer> start(void* data, std::int64_t bytes, int from, int tag);
  // Matches the messages that have arrived. Called by any thread that waits.
  void progress();

 private:
  struct Receive;
  class MatchedTransfer;
  // Whether all chunks of the message have been matched.
  bool is_matched(const Receive& receive);
  void remove(const Receive& receive);
  void match(Receive& receive);

  MPI_Comm comm_;
  std::mutex mutex_;
  std::list<std::shared_ptr<Receive>> unmatched_;
  std::atomic<bool> empty_ = true;
};

}  // namespace renga
