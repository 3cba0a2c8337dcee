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
  // Returns when it is over; throws what went wrong, or TimeOut after `seconds` (0: no limit).
  virtual void wait(double seconds) = 0;
};

// A message: it advances whenever somebody looks.
class TransferWork final : public Work {
 public:
  // `arrays` hold the message's bytes; `turn` says what and how long.
  TransferWork(Turn turn, std::shared_ptr<Transport> transport, Transfers transfers,
               std::vector<Array> arrays);
  bool test() override;
  void wait(double seconds) override;

 private:
  Turn turn_;
  std::shared_ptr<Transport> transport_;
  Transfers transfers_;
  std::vector<Array> arrays_;
};

// Carries out jobs one after another on a thread of its own, which starts with the first job.
class WorkQueue {
 public:
  ~WorkQueue();
  std::shared_ptr<Work> push(Turn turn, std::function<void()> job);
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
