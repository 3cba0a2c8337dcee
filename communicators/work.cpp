#include "work.h"

#include "devices/long_work.h"

namespace renga {

TransferWork::TransferWork(Turn turn, std::shared_ptr<Transport> transport, Transfers transfers,
                           std::vector<Array> arrays)
    : turn_(std::move(turn)),
      transport_(std::move(transport)),
      transfers_(std::move(transfers)),
      arrays_(std::move(arrays)) {}

bool TransferWork::test() {
  transport_->progress();
  std::erase_if(transfers_, [](const auto& transfer) { return transfer->test(); });
  return transfers_.empty();
}

void TransferWork::wait(double seconds) {
  const LongWork lend;
  Turn turn = turn_;
  if (seconds > 0) turn.seconds = seconds;
  finish(transfers_, turn);
}

class WorkQueue::Job final : public Work {
 public:
  Job(Turn turn, std::function<void()> body) : turn_(std::move(turn)), body_(std::move(body)) {}

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
    const LongWork lend;
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
  std::function<void()> body_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr error_;
  bool over_ = false;
};

WorkQueue::~WorkQueue() {
  const LongWork lend;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<Work> WorkQueue::push(Turn turn, std::function<void()> job) {
  auto work = std::make_shared<Job>(std::move(turn), std::move(job));
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
