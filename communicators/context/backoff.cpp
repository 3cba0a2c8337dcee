#include "context/backoff.h"

#include <sched.h>
#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "context/pause.h"

namespace renga {

namespace {

// About 0.1 ms. A rank that yields its core to another program gets it back milliseconds later.
constexpr int kSpins = 4000;
constexpr int kSpinsPerProgress = 64;  // other ranks may wait for this one's messages
constexpr int kYields = 20000;         // as fast as spinning where no other thread wants to run
// On crowded cores, where those that are waited for want to run. If all wait for the
// network, yielding would keep the cores from what the messages need; fewer times make a long
// all-reduce slower (measured: docs/measurements/two_ranks.md).
constexpr int kYieldsIfCrowded = 700;
constexpr std::chrono::microseconds kShortestSleep{20};
constexpr std::chrono::microseconds kLongestSleep{1000};
constexpr std::chrono::milliseconds kSignalInterval{50};
// A rank's messages arrive at most this long after its shutdown notice.
constexpr std::chrono::milliseconds kShutdownGrace{500};

// Whether there are more ranks than cores, or OpenMP's threads have been told not to spin, either.
bool is_crowded(const Transport& transport) {
  static const int cores = static_cast<int>(std::thread::hardware_concurrency());  // reads a file
  static const bool is_passive = [] {
    const char* const policy = std::getenv("OMP_WAIT_POLICY");
    return policy != nullptr && strcasecmp(policy, "passive") == 0;
  }();
  return is_passive || transport.topology().intra_size > cores;
}

}  // namespace

Backoff::Backoff(Transport& transport, double timeout_seconds, bool interruptible,
                 bool drives_progress)
    : transport_(transport),
      timeout_seconds_(timeout_seconds),
      interruptible_(interruptible),
      sleeps_for_part_(drives_progress) {
  // A background thread would take the core from its own rank, which computes meanwhile.
  if (!interruptible) {
    rounds_ = kSpins + kYields;
  } else if (is_crowded(transport)) {
    // A spinning rank would delay those that it waits for.
    rounds_ = kSpins + kYields - kYieldsIfCrowded;
    sleeps_for_part_ = true;
  }
}

void Backoff::sleep_at_once() {
  rounds_ = kSpins + kYields;
  sleeps_for_part_ = false;
}

bool Backoff::wait() {
  ++rounds_;
  if (rounds_ < kSpins) {
    pause_spinning();
    if (rounds_ % kSpinsPerProgress == 0) transport_.progress();
    return true;
  }
  transport_.progress();
  if (rounds_ < kSpins + kYields) {
    sched_yield();
    if (rounds_ % kSpinsPerProgress != 0) return true;
  } else {
    // Each sleep costs two context switches, so the time doubles.
    const int exponent = std::min(rounds_ - kSpins - kYields, 10);
    const Clock::duration doubled = kShortestSleep * (1 << exponent);
    const Clock::duration sleep = sleeps_for_part_ ? (Clock::now() - start_) / 64 : doubled;
    std::this_thread::sleep_for(std::clamp<Clock::duration>(sleep, kShortestSleep, kLongestSleep));
  }
  return check();
}

bool Backoff::check() {
  const auto now = Clock::now();
  if (interruptible_ && check_signals != nullptr && now - signals_checked_ > kSignalInterval) {
    signals_checked_ = now;
    check_signals();
  }
  return timeout_seconds_ <= 0 || now - start_ < std::chrono::duration<double>(timeout_seconds_);
}

bool Backoff::has_lost(int peer) {
  if (!transport_.has_shut_down(peer)) return false;
  const auto now = Clock::now();
  if (!shutdown_seen_) shutdown_seen_ = now;
  return now - *shutdown_seen_ > kShutdownGrace;
}

}  // namespace renga
