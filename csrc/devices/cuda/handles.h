// Handles of NVIDIA's libraries, which are expensive to create and belong to one device. A handle
// is a pointer.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "devices/cuda/cuda.h"

namespace renga::cuda {

// A handle of the current device for a scope, for one thread at a time. Handles are kept for later
// scopes and never destroyed: at the end of the process, the driver may be gone before them.
template <class Handle, Handle (*create)()>
class Lease {
 public:
  Lease() {
    RENGA_CUDA(cudaGetDevice(&device_));
    {
      const std::lock_guard lock(pool().mutex);
      std::vector<Handle>& idle = pool().idle[device_];
      if (!idle.empty()) {
        handle_ = idle.back();
        idle.pop_back();
        return;
      }
    }
    handle_ = create();
  }
  ~Lease() {
    const std::lock_guard lock(pool().mutex);
    pool().idle[device_].push_back(handle_);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Handle get() const { return handle_; }

 private:
  struct Pool {
    std::mutex mutex;
    std::map<int, std::vector<Handle>> idle;
  };
  static Pool& pool() {
    static auto* const the_pool = new Pool;
    return *the_pool;
  }

  int device_ = 0;
  Handle handle_ = nullptr;
};

}  // namespace renga::cuda
