// Receives of messages whose sizes only their senders know, by matched probes.
//
// If a message is longer than a posted receive, Open MPI writes past the end of the buffer. So a
// receive is posted only after its message has been probed and has the expected size.
#pragma once

#include <mpi.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "transport/mpi/communicators.h"
#include "transport/transport.h"

namespace renga {

class MatchedReceives {
 public:
  explicit MatchedReceives(std::shared_ptr<MpiCommunicators> comms)
      : comms_(std::move(comms)), comm_(comms_->user) {}

  // Messages from one rank with one tag are matched in the order of these calls.
  std::unique_ptr<Transfer> start(void* data, std::int64_t bytes, int from, int tag,
                                  Transport::Accepts accepts);
  // A message that has arrived and that no receive started before waits for.
  std::optional<Envelope> probe(std::optional<int> from, std::optional<int> tag);
  // Matches the messages that have arrived, unless another thread does. Called by any thread.
  void progress();

 private:
  struct Receive;
  class MatchedTransfer;
  using Queue = std::deque<std::shared_ptr<Receive>>;
  // Matches the messages that could be the message of `receive`, unless another thread does.
  void progress(const Receive& receive);
  // Removes an unmatched receive; false if it has been matched.
  bool remove(const Receive& receive);
  void match_all();
  void match(Queue& queue);
  void match(Receive& receive);

  std::shared_ptr<MpiCommunicators> comms_;
  MPI_Comm comm_;
  std::mutex mutex_;
  std::map<std::pair<int, int>, Queue> unmatched_;  // by source and tag
  std::atomic<int> count_ = 0;                      // of the unmatched
};

}  // namespace renga
