// Collectives on GPU arrays through NCCL; each rank has one GPU.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "collectives/collectives.h"
#include "devices/streams.h"
#include "work.h"

namespace renga::nccl {

// Why NCCL cannot be used here, such as no driver or no GPU; empty if it can.
std::string unavailable_reason();

// NCCL's unique id, which one rank creates and all pass to NcclGroup.
ncclUniqueId create_unique_id();

// Collectives run on their own stream. NCCL chooses the order of the operands.
//
// A thread watches the collectives. When a rank is gone or the time-out has passed since a
// collective could have begun, it aborts them, so that nothing waits for ever; all further calls
// throw the reason, and so does the next wait for the device.
class NcclGroup final : public DeviceCollectives, public std::enable_shared_from_this<NcclGroup> {
 public:
  // All ranks call it. `timeout_seconds` is the time-out of every collective, 0 for none.
  NcclGroup(const ncclUniqueId& id, int rank, int size, Device device, double timeout_seconds);
  // Waits for the collectives in flight.
  ~NcclGroup() override;
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  void all_reduce(const CollectiveContext& context, const Arguments& arguments) override;
  void reduce_scatter(const CollectiveContext& context, const Arguments& arguments) override;
  void all_gather(const CollectiveContext& context, const Arguments& arguments) override;
  void all_to_all(const CollectiveContext& context, const Arguments& arguments) override;
  void broadcast(const CollectiveContext& context, const Arguments& arguments) override;

  std::shared_ptr<Work> start(const CollectiveContext& context, std::vector<Array> arrays,
                              const std::function<void()>& launch) override;
  void throw_failure() override;
  Device device() const override { return device_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct InFlight;
  class CollectiveWork;
  // Launches call(i) for i < n as one group, and waits until they are on the stream.
  template <class NcclCall>
  void launch(const CollectiveContext& context, std::size_t n, const NcclCall& call);
  // xs[r] goes to rank r, ys[r] comes from it.
  void exchange(const CollectiveContext& context, const std::vector<Array>& xs,
                const std::vector<Array>& ys);
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
  Device device_;
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
