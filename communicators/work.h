// Communication in flight, and the thread that runs what is not waited for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "context/collective_context.h"
#include "context/pending_transfers.h"
#include "tensor/array.h"
#include "transport/progress_thread.h"

namespace renga {

// How many forks lie between the first process and this one.
extern std::atomic<int> fork_count;

class Work {
 public:
  // When a collective ran, in nanoseconds of the steady clock, and what this rank sent in it.
  struct Report {
    std::int64_t begin = 0, end = 0, messages = 0, bytes = 0;
  };

  virtual ~Work() = default;
  // Whether it is complete; throws its error.
  virtual bool test() = 0;
  // Whether it is complete or failed. Never throws.
  bool is_done();
  // Returns when it is complete; throws its error, or TimeoutError after `timeout_seconds` (0: no
  // time-out).
  virtual void wait(double timeout_seconds) = 0;
  // A collective in the background has a report, once it is complete.
  virtual std::optional<Report> report() { return std::nullopt; }

 protected:
  // Whether the process was forked since: another thread may have been using the members.
  bool is_forked() const { return fork_count_ != fork_count; }
  // Throws if it was.
  void check_not_forked(const CollectiveContext& context) const;

 private:
  int fork_count_ = fork_count;  // of the process when this was made
};

// Messages between two ranks. They advance inside test() and wait(), and on the progress thread of
// the transport if there is one.
class TransferWork final : public Work, private InFlight {
 public:
  // Keeps `arrays`, whose bytes are sent or received.
  TransferWork(CollectiveContext context, std::shared_ptr<Transport> transport,
               std::vector<Array> arrays);
  ~TransferWork() override;
  void add(std::unique_ptr<Transfer> transfer);
  // Lets transfers, after the last add(), advance while no caller looks at them; for `soon` see
  // ProgressThread::add().
  void advance_in_background(bool soon);
  bool test() override;
  void wait(double timeout_seconds) override;
  // A caller that has released the GIL calls this.
  void wait_without_gil(double timeout_seconds);

 private:
  // Runs `run` unless they have failed. Remembers its error, except a time-out, and whether they
  // are complete then. The caller has locked the mutex.
  template <class Run>
  void attempt(const Run& run);
  Poll poll() override;

  CollectiveContext context_;
  std::shared_ptr<Transport> transport_;
  std::mutex mutex_;
  Transfers transfers_;
  std::vector<Array> arrays_;
  std::exception_ptr error_;
  std::atomic<bool> complete_ = false;
  bool in_background_ = false;
};

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
