// Memory of CUDA devices goes back to the system while nothing is recorded.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

namespace renga::cuda {

// The blocks of a device that are to be freed. cudaFree() waits for the device, which no recording
// on any thread allows, and what the device computes may itself wait for other threads.
class Frees {
 public:
  void add(void* block);
  // Frees the blocks, of the current device, that were added; those that are left when a recording
  // begins are freed when it ends.
  void free_all();
  // Around a recording.
  void begin_recording();
  void end_recording();

 private:
  std::mutex mutex_;  // not held while the device is waited for
  std::condition_variable is_idle_;
  std::vector<void*> blocks_;
  int recordings_ = 0;
  bool is_freeing_ = false;
};

Frees& frees_of(int device);

}  // namespace renga::cuda
