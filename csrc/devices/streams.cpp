#include "devices/streams.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace renga {
namespace {

struct Checks {
  std::mutex mutex;
  std::map<const FailureCheck*, std::pair<int, std::function<void()>>> all;
};

Checks& checks() {
  static auto* const kept = new Checks;  // never destroyed: devices are waited for until the end
  return *kept;
}

thread_local std::vector<void*> streams;  // by device, as far as set

}  // namespace

void (*order_streams)(void* later, void* earlier, int index) = nullptr;

void* current_stream(int index) {
  const auto i = static_cast<std::size_t>(index);
  return i < streams.size() ? streams[i] : nullptr;
}

void set_current_stream(int index, void* stream) {
  const auto i = static_cast<std::size_t>(index);
  if (i >= streams.size()) streams.resize(i + 1);
  streams[i] = stream;
}

FailureCheck::FailureCheck(int index, std::function<void()> check) {
  const std::lock_guard lock(checks().mutex);
  checks().all[this] = {index, std::move(check)};
}

FailureCheck::~FailureCheck() {
  const std::lock_guard lock(checks().mutex);
  checks().all.erase(this);
}

void throw_failures(int index) {
  const std::lock_guard lock(checks().mutex);
  for (const auto& [_, entry] : checks().all) {
    if (entry.first == index) entry.second();
  }
}

}  // namespace renga
