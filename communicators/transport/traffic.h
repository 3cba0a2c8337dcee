// Counts of what a rank sends.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace renga {

// Messages and their bytes, counted by any thread.
class SentMessages {
 public:
  void add(std::int64_t bytes) {
    messages_.fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  std::int64_t messages() const { return messages_.load(std::memory_order_relaxed); }
  std::int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> messages_ = 0;
  std::atomic<std::int64_t> bytes_ = 0;
};

// The calls of a communicator by name, and what was sent in them. They count in the communicators
// that it was split from, too.
class Traffic {
 public:
  struct Counts {
    std::int64_t calls = 0, messages = 0, bytes = 0;
  };

  explicit Traffic(std::shared_ptr<Traffic> parent) : parent_(std::move(parent)) {}
  void add(const char* name, std::int64_t messages, std::int64_t bytes);
  // Counts an all_reduce that sends no messages, without a lock, because such a call may take less
  // than a microsecond.
  void add_all_reduce();
  std::map<std::string, Counts> counts() const;

 private:
  std::shared_ptr<Traffic> parent_;
  std::atomic<std::int64_t> all_reduces_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, Counts> counts_;  // besides those
};

}  // namespace renga
