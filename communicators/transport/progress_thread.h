// A thread on which messages advance while no caller looks at them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

namespace renga {

// Messages that a ProgressThread polls.
class InFlight {
 public:
  // advanced: some have arrived, others are on their way. over: all are complete, or one has
  // failed.
  enum class Poll { unchanged, advanced, over };
  // Does not wait, never throws, and touches no Python object: the interpreter may have ended.
  virtual Poll poll() = 0;

 protected:
  ~InFlight() = default;
};

// MPI moves most of a long message only inside of its calls, so a thread has to call it. The thread
// polls 50 µs after something has happened, then after twice as long each time, up to 2 ms: it
// takes about a hundredth of the core on which its rank computes. Without anything in flight it
// sleeps.
class ProgressThread {
 public:
  ~ProgressThread() { stop(); }
  // Polls `messages` until they are over or removed. `soon`: something will happen to them, so the
  // thread is woken if it sleeps between two polls; that takes some microseconds of the caller.
  void add(InFlight& messages, bool soon);
  // Returns once the thread no longer uses `messages`, which it may have dropped before.
  void remove(InFlight& messages);
  // Ends the thread. Messages advance only where a caller looks at them from now on.
  void stop();

 private:
  using Lock = std::unique_lock<std::mutex>;
  void run();
  // Polls some of the messages, in turn; whether one has advanced.
  bool poll_some(Lock& lock);

  std::mutex mutex_;
  std::condition_variable changed_;   // woken_ or stopped_
  std::condition_variable unpolled_;  // polled_ is over
  std::set<InFlight*> in_flight_;
  InFlight* polled_ = nullptr;    // is being polled, without the lock
  InFlight* previous_ = nullptr;  // the last that was polled
  bool idle_ = false;             // sleeps until something is added
  bool woken_ = false;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace renga
