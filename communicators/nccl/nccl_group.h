// Collectives on GPU arrays through NCCL; each rank has one GPU.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "devices/streams.h"
#include "work.h"

namespace renga::nccl {

// Throws std::runtime_error with the error text of NCCL.
void check(ncclResult_t result, const char* call);

// Why NCCL cannot be used here, such as no driver or no GPU; empty if it can.
std::string unavailable_reason();

// NCCL's unique id, which one rank creates and all pass to NcclGroup.
std::string create_unique_id();

// A contiguous array of `n` elements in this rank's GPU.
struct DeviceArray {
  std::uintptr_t data;
  std::size_t n;
  ncclDataType_t dtype;
};

// One rank's arguments of a collective.
struct DeviceArguments {
  std::vector<DeviceArray> xs;  // operands
  std::vector<DeviceArray> ys;  // results
  ncclRedOp_t op = ncclSum;
  int root = 0;
};

// All ranks call the same collectives in the same order. Collectives run on their own stream after
// what is on the current stream, and beside what follows there. wait() of a Work has the current
// stream wait for the collective, and the host for nothing, unless it is given a time-out; until
// then the caller keeps the operands. NCCL chooses the order of the operands.
//
// A thread watches the collectives. When a rank is gone or the time-out has passed since a
// collective could have begun, it aborts them, so that nothing waits for ever; all further calls
// throw the reason, and so does the next wait for the device.
class NcclGroup : public std::enable_shared_from_this<NcclGroup> {
 public:
  // All ranks call it. `timeout_seconds` is the time-out of every collective, 0 for none.
  NcclGroup(const std::string& unique_id, int rank, int size, int device, double timeout_seconds);
  // Waits for the collectives in flight.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // Starts a collective, by the name that it has in collectives/collectives.cpp.
  std::shared_ptr<Work> call(const std::string& collective, const DeviceArguments& arguments);

  // Throws why the collectives were aborted, if they were.
  void throw_failure();

 private:
  using Clock = std::chrono::steady_clock;
  struct InFlight;
  class CollectiveWork;
  // Waits until a nonblocking NCCL call has been launched; throws its error or TimeoutError.
  void wait_for_launch(const char* name);
  void throw_failure_once();
  // The following are called with the mutex locked.
  void rethrow_failure() const;
  // Removes the collectives that are complete; aborts if one has failed.
  void poll();
  void poll_unless_failed();
  void watch(const std::stop_token& stop);

  int rank_;
  int size_;
  int device_;
  double timeout_seconds_;
  ncclComm_t comm() const { return comm_.get(); }
  cudaStream_t stream() const { return stream_.get(); }

  struct DestroyStream {
    void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  };
  struct AbortComm {
    // Not ncclCommDestroy, which waits for ranks that may have exited.
    void operator()(ncclComm_t comm) const { ncclCommAbort(comm); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream> stream_;
  std::mutex mutex_;
  std::unique_ptr<std::remove_pointer_t<ncclComm_t>, AbortComm> comm_;  // none once it is aborted
  std::deque<std::shared_ptr<InFlight>> in_flight_;                     // in their order
  std::exception_ptr failure_;
  bool is_reported_ = false;  // by a wait for the device
  std::condition_variable_any launched_;
  std::optional<FailureCheck> check_;
  std::jthread watcher_;
};

}  // namespace renga::nccl
