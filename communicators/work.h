// Communication under way, and the thread that carries out what is not waited for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tensor/array.h"
#include "turn.h"

namespace renga {

class Work {
 public:
  virtual ~Work() = default;
  // Whether it is over; throws what went wrong.
  virtual bool test() = 0;
  // Whether nothing more happens; throws nothing.
  bool is_over();
  // Returns when it is over; throws what went wrong, or TimeOut after `seconds` (0: no limit).
  virtual void wait(double seconds) = 0;
};

// A message: it advances whenever somebody looks.
class TransferWork final : public Work {
 public:
  // `arrays` hold the message's bytes; `turn` says what and how long.
  TransferWork(Turn turn, std::shared_ptr<Transport> transport, std::vector<Array> arrays);
  ~TransferWork() override;
  void add(std::unique_ptr<Transfer> transfer);
  bool test() override;
  void wait(double seconds) override;
  // The same for a caller that has lent the interpreter.
  void complete(double seconds);

 private:
  // Keeps what goes wrong, but not that time is up.
  template <class Act>
  void attempt(const Act& act);

  Turn turn_;
  std::shared_ptr<Transport> transport_;
  std::mutex mutex_;
  Transfers transfers_;
  std::vector<Array> arrays_;
  std::exception_ptr error_;
};

// Counts, in a forked process, the forks between it and the first one.
inline std::atomic<int> forks = 0;

// Carries out jobs one after another on a thread of its own, which starts with the first job.
class WorkQueue {
 public:
  ~WorkQueue();
  // The Work keeps `transport`, which the turn refers to.
  std::shared_ptr<Work> push(Turn turn, std::shared_ptr<Transport> transport,
                             std::function<void()> job);
  // Whether nothing is under way or queued, so that a caller may act itself without overtaking.
  bool idle() const { return open_.load(std::memory_order_acquire) == 0; }

 private:
  class Job;
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> jobs_;
  std::atomic<int> open_ = 0;  // jobs that are not over
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace renga
