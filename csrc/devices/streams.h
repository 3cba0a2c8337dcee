// Streams of the devices that have streams, by their index: the one on which a thread computes, and
// what fails on them unseen.
#pragma once

#include <functional>

namespace renga {

// The stream on which this thread computes on a device: the default stream (nullptr) unless set.
void* current_stream(int index);
void set_current_stream(int index, void* stream);

// Something on a device that may fail after the host has started it, such as a collective whose
// ranks are gone. `check` throws what has gone wrong, once; it is called on any thread, as long as
// this object lives.
class FailureCheck {
 public:
  FailureCheck(int index, std::function<void()> check);
  ~FailureCheck();
  FailureCheck(const FailureCheck&) = delete;
  FailureCheck& operator=(const FailureCheck&) = delete;
};

// Throws what has failed on a device. Drivers call it after the host has waited for the device, so
// that no result is read that was not computed.
void throw_failures(int index);

}  // namespace renga
