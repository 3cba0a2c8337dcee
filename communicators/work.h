// Communication in flight, and the thread that runs what is not waited for.
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

#include "context/collective_context.h"
#include "context/pending_transfers.h"
#include "tensor/array.h"

namespace renga {

class Work {
 public:
  virtual ~Work() = default;
  // Whether it is complete; throws its error.
  virtual bool test() = 0;
  // Whether it is complete or failed. Never throws.
  bool is_done();
  // Returns when it is complete; throws its error, or TimeoutError after `timeout_seconds` (0: no
  // time-out).
  virtual void wait(double timeout_seconds) = 0;
};

// Messages between two ranks, which advance only inside test() and wait().
class TransferWork final : public Work {
 public:
  // Keeps `arrays`, whose bytes are sent or received.
  TransferWork(CollectiveContext context, std::shared_ptr<Transport> transport,
               std::vector<Array> arrays);
  ~TransferWork() override;
  void add(std::unique_ptr<Transfer> transfer);
  bool test() override;
  void wait(double timeout_seconds) override;
  // For a caller that has released the GIL.
  void wait_without_gil(double timeout_seconds);

 private:
  // Remembers the error of `run`, except a time-out.
  template <class Run>
  void attempt(const Run& run);

  CollectiveContext context_;
  std::shared_ptr<Transport> transport_;
  std::mutex mutex_;
  Transfers transfers_;
  std::vector<Array> arrays_;
  std::exception_ptr error_;
};

// How many forks lie between the first process and this one.
inline std::atomic<int> fork_count = 0;

// Runs jobs in order on its own thread, which starts with the first job.
class WorkQueue {
 public:
  ~WorkQueue();
  // The Work keeps `transport` alive, to which the context refers.
  std::shared_ptr<Work> push(CollectiveContext context, std::shared_ptr<Transport> transport,
                             std::function<void()> job);
  // Whether no job is running or queued, so that a caller may run one itself in order.
  bool is_idle() const { return unfinished_.load(std::memory_order_acquire) == 0; }

 private:
  class Job;
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> jobs_;
  std::atomic<int> unfinished_ = 0;  // jobs
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace renga
