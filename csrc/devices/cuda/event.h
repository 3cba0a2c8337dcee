// Events on streams: points in time that other streams or the host can wait for.
#pragma once

#include "devices/cuda/check.h"

namespace renga::cuda {

// An event of the current device.
class Event {
 public:
  explicit Event(unsigned flags = cudaEventDefault) {
    RENGA_CUDA(cudaEventCreateWithFlags(&event_, flags));
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  cudaEvent_t get() const { return event_; }
  // Records the event after what is on a stream now.
  void record(cudaStream_t stream) const { RENGA_CUDA(cudaEventRecord(event_, stream)); }
  // What follows on a stream waits for this event.
  void hold(cudaStream_t stream) const { RENGA_CUDA(cudaStreamWaitEvent(stream, event_, 0)); }
  bool is_over() const { return cudaEventQuery(event_) == cudaSuccess; }
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
