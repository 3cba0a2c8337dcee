// Events on streams: points in time that other streams or the host can wait for.
#pragma once

#include "devices/cuda/cuda.h"

namespace renga::cuda {

// An event of the current device.
class Event {
 public:
  Event() { RENGA_CUDA(cudaEventCreateWithFlags(&event_, 0)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // After what is on the current stream now.
  void record() const { RENGA_CUDA(cudaEventRecord(event_, stream())); }
  // Waits for this event, which is later than `begin`.
  float milliseconds_since(const Event& begin) const {
    float time = 0;
    RENGA_CUDA(cudaEventSynchronize(event_));
    RENGA_CUDA(cudaEventElapsedTime(&time, begin.event_, event_));
    return time;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace renga::cuda
