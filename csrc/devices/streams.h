// Streams of the devices that have streams, by their index: the one on which a thread computes, and
// what fails on them unseen.
#pragma once

#include <functional>

#include "devices/device.h"

namespace renga {

// The stream on which this thread computes on a device: the default stream (nullptr) unless set.
void* current_stream(int index);
void set_current_stream(int index, void* stream);

// Has what follows on the stream `later` of a device wait for what is on `earlier` now; set by the
// driver that has streams, nullptr until then. Does not throw.
extern void (*order_streams)(void* later, void* earlier, int index);

// A freed block of memory may still be in use by what a device has yet to compute: the allocator
// reuses it on the stream for which it was allocated, which waits for the one on which it was
// freed. After this call, what was allocated for `stream` goes back to the system as soon as none
// of it is in use.
void release_memory_of_stream(void* stream, Device device);
// Until then, what is allocated for `stream` after this call stays there, also where the cache is
// emptied or memory is exhausted: a recorded graph uses blocks that were freed while it was
// recorded.
void keep_memory_of_stream(void* stream, Device device);

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
