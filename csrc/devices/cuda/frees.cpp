#include "devices/cuda/frees.h"

#include <cuda_runtime_api.h>

#include <map>

#include "devices/gil_release.h"

namespace renga::cuda {

void Frees::add(void* block) {
  const std::lock_guard lock(mutex_);
  blocks_.push_back(block);
}

void Frees::free_all() {
  std::unique_lock lock(mutex_);
  if (is_freeing_) return;
  is_freeing_ = true;
  while (recordings_ == 0 && !blocks_.empty()) {
    void* const block = blocks_.back();
    blocks_.pop_back();
    lock.unlock();
    cudaFree(block);
    lock.lock();
  }
  is_freeing_ = false;
  is_idle_.notify_all();
}

void Frees::begin_recording() {
  const GilRelease wait;
  std::unique_lock lock(mutex_);
  is_idle_.wait(lock, [this] { return !is_freeing_; });
  ++recordings_;
}

void Frees::end_recording() {
  const GilRelease wait;
  {
    const std::lock_guard lock(mutex_);
    --recordings_;
  }
  free_all();
}

Frees& frees_of(int device) {
  static std::mutex mutex;
  static auto* const all = new std::map<int, Frees>;  // never destroyed: arrays may be freed later
  const std::lock_guard lock(mutex);
  return (*all)[device];
}

}  // namespace renga::cuda
