#include "transport/traffic.h"

namespace renga {

void Traffic::add(const char* name, std::int64_t messages, std::int64_t bytes) {
  for (Traffic* traffic = this; traffic != nullptr; traffic = traffic->parent_.get()) {
    const std::lock_guard lock(traffic->mutex_);
    Counts& counts = traffic->counts_[name];
    ++counts.calls;
    counts.messages += messages;
    counts.bytes += bytes;
  }
}

void Traffic::add_all_reduce() {
  for (Traffic* traffic = this; traffic != nullptr; traffic = traffic->parent_.get()) {
    traffic->all_reduces_.fetch_add(1, std::memory_order_relaxed);
  }
}

std::map<std::string, Traffic::Counts> Traffic::counts() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, Counts> counts = counts_;
  const std::int64_t all_reduces = all_reduces_.load(std::memory_order_relaxed);
  if (all_reduces > 0) counts["all_reduce"].calls += all_reduces;
  return counts;
}

}  // namespace renga
