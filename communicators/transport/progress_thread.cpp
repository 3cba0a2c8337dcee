#include "transport/progress_thread.h"

#include <algorithm>
#include <utility>

namespace renga {

namespace {

constexpr std::chrono::microseconds kShortestInterval{50};
constexpr std::chrono::microseconds kLongestInterval{2000};
// Each poll of one work lets MPI advance all of them, so the others may wait for their turn.
constexpr int kPolledAtOnce = 16;

}  // namespace

void ProgressThread::add(InFlight& messages, bool soon) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  in_flight_.insert(&messages);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  if (!soon && !idle_) return;
  woken_ = true;
  changed_.notify_one();
}

void ProgressThread::remove(InFlight& messages) {
  Lock lock(mutex_);
  in_flight_.erase(&messages);
  unpolled_.wait(lock, [&] { return polled_ != &messages; });
}

void ProgressThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    in_flight_.clear();
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ProgressThread::run() {
  const auto is_woken = [this] { return woken_ || stopped_; };
  std::chrono::microseconds interval = kShortestInterval;
  Lock lock(mutex_);
  while (!stopped_) {
    // Most often something is added again soon: waking this thread takes longer than some polls.
    idle_ = in_flight_.empty() && interval == kLongestInterval;
    if (idle_) {
      changed_.wait(lock, is_woken);
      idle_ = false;
    } else {
      changed_.wait_for(lock, interval, is_woken);
    }
    const bool woken = std::exchange(woken_, false);
    interval =
        poll_some(lock) || woken ? kShortestInterval : std::min(2 * interval, kLongestInterval);
  }
}

bool ProgressThread::poll_some(Lock& lock) {
  bool advanced = false;
  const int count = std::min(kPolledAtOnce, static_cast<int>(in_flight_.size()));
  for (int i = 0; i < count && !in_flight_.empty(); ++i) {
    auto next = in_flight_.upper_bound(previous_);
    if (next == in_flight_.end()) next = in_flight_.begin();
    polled_ = previous_ = *next;
    lock.unlock();
    const InFlight::Poll result = polled_->poll();
    lock.lock();
    advanced = advanced || result == InFlight::Poll::advanced;
    if (result == InFlight::Poll::over) in_flight_.erase(polled_);
    polled_ = nullptr;
    unpolled_.notify_all();
  }
  return advanced;
}

}  // namespace renga
