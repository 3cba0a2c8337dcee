// One rank's part in one collective: where, what, and how long it may wait.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "call.h"
#include "transport.h"
#include "unfinished.h"

namespace renga {

// Time is up; the message names the ranks that are missing. Python sees TimeoutError.
class TimeOut : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Another rank has failed, so this one's wait is in vain.
class RankFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Turn {
  Transport& transport;
  Call call;
  double seconds;              // 0: for ever
  bool interruptible = false;  // on a thread that may run Python's signal handlers

  int rank() const { return transport.placement().rank; }
  int size() const { return transport.placement().size; }
};

// Runs pending signal handlers, if the binding set it; throws what they raise.
inline void (*check_signals)() = nullptr;
// Where in the user's program this thread is, if the binding set it.
inline std::string (*current_site)() = nullptr;

// How a rank waits: it spins, then gives way to other threads, then naps.
class Patience {
 public:
  // Where the wait is for messages, this rank `drives` them on whenever it looks: its naps are then
  // a small part of the whole wait.
  Patience(Transport& transport, double seconds, bool interruptible, bool drives = false);
  explicit Patience(const Turn& turn, bool drives = false)
      : Patience(turn.transport, turn.seconds, turn.interruptible, drives) {}
  // Waits a little longer than the last time; false when time is up.
  bool pause();
  // For who waits in another way: runs signal handlers now and then; false when time is up.
  bool lasts();
  // Whether `peer`, for whom this rank waits, has been gone for so long that nothing of it is still
  // on its way.
  bool is_vain(int peer);

 private:
  using Clock = std::chrono::steady_clock;
  Transport& transport_;
  double seconds_;
  bool interruptible_;
  bool drives_;
  int rounds_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point signals_checked_ = start_;
  std::optional<Clock::time_point> departure_seen_;
};

// Says who is missing: "all_reduce …: rank 0 waited 5 s for rank 2".
[[noreturn]] void time_out(const Turn& turn, const std::vector<int>& missing,
                           const std::string& more = "");

// Says who will not come: "all_reduce …: rank 2 has left, rank 0 waits for it".
[[noreturn]] void give_up(const Turn& turn, int missing, const std::string& more = "");

// Waits for all of them; throws TimeOut with the peers of those that are not over.
void wait_for(Transfers& transfers, const Turn& turn);
// The same for messages that are given up where it throws.
void finish(Transfers& transfers, const Turn& turn);

}  // namespace renga
