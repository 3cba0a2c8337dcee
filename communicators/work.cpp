#include "work.h"

#include "devices/gil_release.h"

namespace renga {

bool Work::is_over() {
  try {
    return test();
  } catch (const std::exception&) {
    return true;
  }
}

TransferWork::TransferWork(Turn turn, std::shared_ptr<Transport> transport,
                           std::vector<Array> arrays)
    : turn_(std::move(turn)), transport_(std::move(transport)), arrays_(std::move(arrays)) {}

TransferWork::~TransferWork() {
  if (!transfers_.empty()) give_up(std::move(transfers_), std::move(arrays_));
}

void TransferWork::add(std::unique_ptr<Transfer> transfer) {
  transfers_.push_back(std::move(transfer));
}

template <class Act>
void TransferWork::attempt(const Act& act) {
  if (error_) std::rethrow_exception(error_);
  try {
    act();
  } catch (const TimeOut&) {
    throw;
  } catch (const std::runtime_error&) {
    error_ = std::current_exception();
    throw;
  } catch (const InvalidType&) {
    error_ = std::current_exception();
    throw;
  }
}

bool TransferWork::test() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;  // another thread waits for it
  attempt([this] {
    transport_->progress();
    drop_finished(transfers_);
  });
  return transfers_.empty();
}

void TransferWork::complete(double seconds) {
  const std::lock_guard lock(mutex_);
  Turn turn = turn_;
  turn.seconds = seconds;
  attempt([&] { wait_for(transfers_, turn); });
}

void TransferWork::wait(double seconds) {
  const GilRelease lend;
  complete(seconds > 0 ? seconds : turn_.seconds);
}

class WorkQueue::Job final : public Work {
 public:
  Job(Turn turn, std::shared_ptr<Transport> transport, std::function<void()> body)
      : turn_(std::move(turn)), transport_(std::move(transport)), body_(std::move(body)) {}

  void carry_out() {
    std::exception_ptr error;
    try {
      body_();
    } catch (...) {
      error = std::current_exception();
    }
    body_ = nullptr;
    const std::lock_guard lock(mutex_);
    error_ = error;
    over_ = true;
    changed_.notify_all();
  }

  bool test() override {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    return over_;
  }

  void wait(double seconds) override {
    const GilRelease lend;
    Patience patience(turn_.transport, seconds, true);
    while (!wait_a_little()) {
      if (!patience.lasts()) {
        fail<TimeOut>(turn_.call.text_and_site(), ": not over after ", seconds, " s on rank ",
                      turn_.rank());
      }
    }
    test();
  }

 private:
  bool wait_a_little() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(1), [this] { return over_; });
  }

  Turn turn_;
  std::shared_ptr<Transport> transport_;
  std::function<void()> body_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr error_;
  bool over_ = false;
};

WorkQueue::~WorkQueue() {
  const GilRelease lend;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<Work> WorkQueue::push(Turn turn, std::shared_ptr<Transport> transport,
                                      std::function<void()> job) {
  auto work = std::make_shared<Job>(std::move(turn), std::move(transport), std::move(job));
  const std::lock_guard lock(mutex_);
  jobs_.push_back(work);
  ++open_;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
  return work;
}

void WorkQueue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closed_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::shared_ptr<Job> job = jobs_.front();
    lock.unlock();
    job->carry_out();
    lock.lock();
    jobs_.pop_front();
    --open_;
  }
}

}  // namespace renga
