#include "devices/streams.h"

#include <map>
#include <mutex>
#include <utility>

namespace renga {
namespace {

struct Checks {
  std::mutex mutex;
  std::map<const FailureCheck*, std::pair<Device, std::function<void()>>> all;
};

Checks& checks() {
  static auto* const kept = new Checks;  // never destroyed: devices are waited for until the end
  return *kept;
}

thread_local void* stream_of_thread = nullptr;

}  // namespace

void* current_stream() { return stream_of_thread; }
void set_current_stream(void* stream) { stream_of_thread = stream; }

FailureCheck::FailureCheck(Device device, std::function<void()> check) {
  const std::lock_guard lock(checks().mutex);
  checks().all[this] = {device, std::move(check)};
}

FailureCheck::~FailureCheck() {
  const std::lock_guard lock(checks().mutex);
  checks().all.erase(this);
}

void throw_failures(Device device) {
  const std::lock_guard lock(checks().mutex);
  for (const auto& [_, entry] : checks().all) {
    if (entry.first == device) entry.second();
  }
}

}  // namespace renga
