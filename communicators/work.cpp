#include "work.h"

#include <chrono>

#include "context/backoff.h"
#include "devices/gil_release.h"

namespace renga {

std::atomic<int> fork_count = 0;

namespace {

std::int64_t nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

void Work::check_not_forked(const CollectiveContext& context) const {
  require<std::runtime_error>(!is_forked(), context.call.op,
                              ": this work belongs to the process that has forked this one");
}

bool Work::is_done() {
  try {
    return test();
  } catch (const std::exception&) {
    return true;
  }
}

TransferWork::TransferWork(CollectiveContext context, std::shared_ptr<Transport> transport,
                           std::vector<Array> arrays)
    : context_(context), transport_(std::move(transport)), arrays_(std::move(arrays)) {}

TransferWork::~TransferWork() {
  if (is_forked()) {
    // The thread, which does not exist here, may have been changing them.
    static_cast<void>(new Transfers(std::move(transfers_)));
    return;
  }
  if (in_background_) transport_->progress_thread()->remove(*this);
  if (!transfers_.empty()) cancel(std::move(transfers_), std::move(arrays_));
}

void TransferWork::add(std::unique_ptr<Transfer> transfer) {
  transfers_.push_back(std::move(transfer));
}

void TransferWork::advance_in_background(bool soon) {
  ProgressThread* const thread = transport_->progress_thread();
  // A short message has been sent already.
  if (thread == nullptr || poll() == Poll::over) return;
  in_background_ = true;
  thread->add(*this, soon);
}

template <class Run>
void TransferWork::attempt(const Run& run) {
  if (error_) std::rethrow_exception(error_);
  try {
    run();
  } catch (const TimeoutError&) {
    throw;
  } catch (const std::runtime_error&) {
    error_ = std::current_exception();
    throw;
  } catch (const InvalidType&) {
    error_ = std::current_exception();
    throw;
  }
  complete_ = transfers_.empty();
}

InFlight::Poll TransferWork::poll() {
  if (complete_) return Poll::over;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return Poll::unchanged;  // a caller waits for it
  const std::size_t before = transfers_.size();
  try {
    attempt([this] { erase_completed(transfers_); });
  } catch (const std::exception&) {
    return Poll::over;
  }
  if (complete_) return Poll::over;
  return transfers_.size() == before ? Poll::unchanged : Poll::advanced;
}

bool TransferWork::test() {
  if (complete_) return true;
  check_not_forked(context_);
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;  // another thread waits for it
  attempt([this] {
    transport_->progress();
    erase_completed(transfers_);
  });
  return complete_;
}

void TransferWork::wait_without_gil(double timeout_seconds) {
  if (complete_) return;
  check_not_forked(context_);
  const std::lock_guard lock(mutex_);
  CollectiveContext context = context_;
  context.timeout_seconds = timeout_seconds;
  attempt([&] { wait_all(transfers_, context); });
}

void TransferWork::wait(double timeout_seconds) {
  const GilRelease lend;
  wait_without_gil(timeout_seconds > 0 ? timeout_seconds : context_.timeout_seconds);
}

class WorkQueue::Job final : public Work {
 public:
  Job(CollectiveContext context, std::shared_ptr<Transport> transport, std::function<void()> body)
      : context_(context), transport_(std::move(transport)), body_(std::move(body)) {}

  void run() {
    std::exception_ptr error;
    const SentMessages& sent = transport_->collective_traffic();
    Report report{nanoseconds(), 0, -sent.messages(), -sent.bytes()};
    try {
      body_();
    } catch (...) {
      error = std::current_exception();
    }
    body_ = nullptr;
    report.end = nanoseconds();
    report.messages += sent.messages();
    report.bytes += sent.bytes();
    report_ = report;
    error_ = error;
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

  bool test() override {
    if (!done_) {
      check_not_forked(context_);  // its thread does not exist there
      return false;
    }
    if (error_) std::rethrow_exception(error_);
    return true;
  }

  void wait(double timeout_seconds) override {
    if (test()) return;
    const GilRelease lend;
    Backoff backoff(context_.transport, timeout_seconds, true);
    while (!wait_briefly()) {
      if (!backoff.check()) {
        fail<TimeoutError>(context_.call.text_and_site(), ": not complete after ", timeout_seconds,
                           " s on rank ", context_.rank());
      }
    }
    test();
  }

  std::optional<Report> report() override { return done_ ? report_ : std::nullopt; }

 private:
  bool wait_briefly() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(1), [this] { return done_.load(); });
  }

  CollectiveContext context_;
  std::shared_ptr<Transport> transport_;
  std::function<void()> body_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr error_;
  std::optional<Report> report_;
  std::atomic<bool> done_ = false;  // then nothing changes the members any more
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

std::shared_ptr<Work> WorkQueue::push(CollectiveContext context,
                                      std::shared_ptr<Transport> transport,
                                      std::function<void()> job) {
  auto work = std::make_shared<Job>(context, std::move(transport), std::move(job));
  const std::lock_guard lock(mutex_);
  jobs_.push_back(work);
  ++unfinished_;
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
    job->run();
    lock.lock();
    jobs_.pop_front();
    --unfinished_;
  }
}

}  // namespace renga
