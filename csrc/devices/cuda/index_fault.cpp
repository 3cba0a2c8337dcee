#include "devices/cuda/index_fault.h"

#include <atomic>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "devices/cuda/cuda.h"

namespace renga::cuda {
namespace {

struct Records {
  std::mutex mutex;
  std::map<int, IndexFault*> by_device;
};

Records& records() {
  static auto* const all = new Records;  // never destroyed: kernels may still run
  return *all;
}

}  // namespace

IndexFault* index_fault(int device) {
  const std::lock_guard lock(records().mutex);
  IndexFault*& record = records().by_device[device];
  if (record == nullptr) {
    const Use use(device);
    void* memory = nullptr;
    RENGA_CUDA(cudaMallocHost(&memory, sizeof(IndexFault)));
    record = new (memory) IndexFault{};
  }
  return record;
}

void throw_index_fault(int device) {
  IndexFault* record = nullptr;
  {
    const std::lock_guard lock(records().mutex);
    const auto known = records().by_device.find(device);
    if (known == records().by_device.end()) return;
    record = known->second;
  }
  if (std::atomic_ref(record->found).load() == 0) return;
  const Use use(device);
  RENGA_CUDA(cudaDeviceSynchronize());  // until the kernel has written all of it
  const IndexFault fault = std::exchange(*record, IndexFault{});
  throw std::out_of_range(std::string(fault.op) + ": expected " + fault.name + " from 0 to " +
                          std::to_string(fault.n - 1) + ", got " + std::to_string(fault.value));
}

}  // namespace renga::cuda
