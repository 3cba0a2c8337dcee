#include "nccl/nccl_group.h"

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "devices/gil_release.h"
#include "transport/errors.h"

namespace renga::nccl {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kPollInterval{50};

std::size_t size_of(ncclDataType_t dtype) {
  switch (dtype) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 4;
  }
}

// Owns a CUDA event.
class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// `later` waits for the work that is on `earlier` now.
void wait_for_stream(cudaStream_t later, cudaStream_t earlier) {
  const Event event;
  check(cudaEventRecord(event.get(), earlier), "cudaEventRecord");
  check(cudaStreamWaitEvent(later, event.get(), 0), "cudaStreamWaitEvent");
}

}  // namespace

void check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw std::runtime_error(std::string(call) + ": " + ncclGetErrorString(result));
}

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
}

std::string unavailable_reason() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) return std::string("no GPU: ") + cudaGetErrorString(status);
  return count == 0 ? "no GPU" : "";
}

std::string create_unique_id() {
  ncclUniqueId id;
  check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  return {id.internal, sizeof id.internal};
}

class NcclGroup::CollectiveWork final : public Work {
 public:
  CollectiveWork(std::shared_ptr<NcclGroup> group, const char* name)
      : group_(std::move(group)), name_(name) {
    check(cudaEventRecord(done_.get(), group_->stream()), "cudaEventRecord");
  }

  bool test() override {
    const cudaError_t status = cudaEventQuery(done_.get());
    if (status == cudaSuccess) return true;  // whatever became of the other ranks since
    if (status != cudaErrorNotReady) check(status, name_);
    ncclResult_t failure = ncclSuccess;
    check(ncclCommGetAsyncError(group_->comm(), &failure), "ncclCommGetAsyncError");
    check(failure, name_);
    return false;
  }

  void wait(double timeout_seconds) override {
    const GilRelease lend;
    const double limit = timeout_seconds > 0 ? timeout_seconds : group_->timeout_seconds_;
    const auto start = Clock::now();
    while (!test()) {
      if (limit > 0 && Clock::now() - start > std::chrono::duration<double>(limit)) {
        throw TimeoutError(std::string(name_) + ": not complete after " + std::to_string(limit) +
                           " s on rank " + std::to_string(group_->rank_));
      }
      std::this_thread::sleep_for(kPollInterval);
    }
  }

 private:
  std::shared_ptr<NcclGroup> group_;
  const char* name_;
  Event done_;
};

NcclGroup::NcclGroup(const std::string& unique_id, int rank, int size, int device,
                     double timeout_seconds)
    : rank_(rank), size_(size), device_(device), timeout_seconds_(timeout_seconds) {
  ncclUniqueId id;
  if (unique_id.size() != sizeof id.internal) {
    throw std::invalid_argument("nccl: expected a unique id of NCCL's size");
  }
  std::memcpy(id.internal, unique_id.data(), sizeof id.internal);
  check(cudaSetDevice(device_), "cudaSetDevice");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  stream_.reset(stream);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // so that the time-out applies
  ncclComm_t comm = nullptr;
  check(ncclCommInitRankConfig(&comm, size, id, rank, &config), "ncclCommInitRank");
  comm_.reset(comm);
  wait_for_launch("ncclCommInitRank");
}

void NcclGroup::wait_for_launch(const char* name) {
  const GilRelease lend;
  const auto start = Clock::now();
  ncclResult_t state = ncclInProgress;
  while (true) {
    check(ncclCommGetAsyncError(comm(), &state), "ncclCommGetAsyncError");
    check(state, name);
    if (state != ncclInProgress) return;
    if (timeout_seconds_ > 0 &&
        Clock::now() - start > std::chrono::duration<double>(timeout_seconds_)) {
      throw TimeoutError(std::string(name) + ": not complete after " +
                         std::to_string(timeout_seconds_) + " s on rank " + std::to_string(rank_));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

template <class Launch>
std::shared_ptr<Work> NcclGroup::start(const char* name, const Launch& launch) {
  check(cudaSetDevice(device_), "cudaSetDevice");
  wait_for_stream(stream(), nullptr);
  check(launch(), name);
  wait_for_launch(name);
  return std::make_shared<CollectiveWork>(shared_from_this(), name);
}

std::shared_ptr<Work> NcclGroup::all_reduce(const DeviceArray& x, std::uintptr_t y,
                                            ncclRedOp_t op) {
  return start("all_reduce", [&] {
    return ncclAllReduce(reinterpret_cast<const void*>(x.data), reinterpret_cast<void*>(y),
                         static_cast<std::size_t>(x.n), x.dtype, op, comm(), stream());
  });
}

std::shared_ptr<Work> NcclGroup::reduce_scatter(const DeviceArray& x, std::uintptr_t y,
                                                ncclRedOp_t op) {
  return start("reduce_scatter", [&] {
    return ncclReduceScatter(reinterpret_cast<const void*>(x.data), reinterpret_cast<void*>(y),
                             static_cast<std::size_t>(x.n / size_), x.dtype, op, comm(), stream());
  });
}

std::shared_ptr<Work> NcclGroup::all_gather(const DeviceArray& x, std::uintptr_t y) {
  return start("all_gather", [&] {
    return ncclAllGather(reinterpret_cast<const void*>(x.data), reinterpret_cast<void*>(y),
                         static_cast<std::size_t>(x.n), x.dtype, comm(), stream());
  });
}

std::shared_ptr<Work> NcclGroup::all_to_all(const DeviceArray& x, std::uintptr_t y) {
  const auto n = static_cast<std::size_t>(x.n / size_);
  const std::size_t bytes = n * size_of(x.dtype);
  return start("all_to_all", [&] {
    check(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < size_; ++r) {
      const std::uintptr_t offset = static_cast<std::size_t>(r) * bytes;
      check(
          ncclSend(reinterpret_cast<const void*>(x.data + offset), n, x.dtype, r, comm(), stream()),
          "ncclSend");
      check(ncclRecv(reinterpret_cast<void*>(y + offset), n, x.dtype, r, comm(), stream()),
            "ncclRecv");
    }
    return ncclGroupEnd();
  });
}

std::shared_ptr<Work> NcclGroup::broadcast(const DeviceArray& x, int root) {
  return start("broadcast", [&] {
    void* data = reinterpret_cast<void*>(x.data);
    return ncclBroadcast(data, data, static_cast<std::size_t>(x.n), x.dtype, root, comm(),
                         stream());
  });
}

}  // namespace renga::nccl
