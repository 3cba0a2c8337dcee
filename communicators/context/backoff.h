// How a rank waits for others: it spins, then yields its core, then sleeps.
#pragma once

#include <chrono>
#include <optional>

#include "context/collective_context.h"

namespace renga {

class Backoff {
 public:
  // `drives_progress`: transfers advance only when this rank calls progress(), so it sleeps for no
  // more than a small part of the time that it has waited. So it does with more ranks than cores
  // or OMP_WAIT_POLICY=passive, where it begins to sleep early.
  Backoff(Transport& transport, double timeout_seconds, bool interruptible,
          bool drives_progress = false);
  explicit Backoff(const CollectiveContext& context, bool drives_progress = false)
      : Backoff(context.transport, context.timeout_seconds, context.interruptible,
                drives_progress) {}
  // Sleeps from the first wait on, twice as long each time: for a thread that nobody waits for.
  void sleep_at_once();
  // Waits, longer each time; false once the time-out has passed.
  bool wait();
  // Does not wait: runs signal handlers every 50 ms; false once the time-out has passed.
  bool check();
  // Whether `peer` shut down so long ago that none of its messages can still be on the way.
  bool has_lost(int peer);

 private:
  using Clock = std::chrono::steady_clock;
  Transport& transport_;
  double timeout_seconds_;
  bool interruptible_;
  bool sleeps_for_part_;  // of the time that it has waited
  int rounds_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point signals_checked_ = start_;
  std::optional<Clock::time_point> shutdown_seen_;
};

}  // namespace renga
