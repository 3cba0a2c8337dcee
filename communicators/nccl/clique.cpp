#include "nccl/clique.h"

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "devices/gil_release.h"

namespace renga::nccl {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kNap{50};

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

// `later` goes on when what `earlier` has been given so far is over.
void follow(cudaStream_t later, cudaStream_t earlier) {
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

std::string what_is_missing() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) return std::string("no GPU: ") + cudaGetErrorString(status);
  return count == 0 ? "no GPU" : "";
}

std::string new_identity() {
  ncclUniqueId id;
  check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  return {id.internal, sizeof id.internal};
}

class Clique::Pending final : public Work {
 public:
  Pending(Clique& clique, const char* name) : clique_(clique), name_(name) {
    check(cudaEventRecord(over_.get(), clique.stream_), "cudaEventRecord");
  }

  bool test() override {
    ncclResult_t failure = ncclSuccess;
    check(ncclCommGetAsyncError(clique_.comm_, &failure), "ncclCommGetAsyncError");
    check(failure, name_);
    const cudaError_t status = cudaEventQuery(over_.get());
    if (status != cudaErrorNotReady) check(status, name_);
    return status == cudaSuccess;
  }

  void wait(double seconds) override {
    const GilRelease lend;
    const double limit = seconds > 0 ? seconds : clique_.seconds_;
    const auto start = Clock::now();
    while (!test()) {
      if (limit > 0 && Clock::now() - start > std::chrono::duration<double>(limit)) {
        throw TimeOut(std::string(name_) + ": not over after " + std::to_string(limit) +
                      " s on rank " + std::to_string(clique_.rank_));
      }
      std::this_thread::sleep_for(kNap);
    }
  }

 private:
  Clique& clique_;
  const char* name_;
  Event over_;
};

Clique::Clique(const std::string& identity, int rank, int size, int device, double seconds)
    : rank_(rank), size_(size), device_(device), seconds_(seconds) {
  ncclUniqueId id;
  if (identity.size() != sizeof id.internal) {
    throw std::invalid_argument("nccl: expected an identity of NCCL's size");
  }
  std::memcpy(id.internal, identity.data(), sizeof id.internal);
  check(cudaSetDevice(device_), "cudaSetDevice");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // so that a rank that stays away does not hold this one for ever
  check(ncclCommInitRankConfig(&comm_, size, id, rank, &config), "ncclCommInitRank");
  settle("ncclCommInitRank");
}

Clique::~Clique() {
  // Waiting for the others' part could be for ever: they may have gone.
  ncclCommAbort(comm_);
  cudaStreamDestroy(stream_);
}

void Clique::settle(const char* name) {
  const GilRelease lend;
  const auto start = Clock::now();
  ncclResult_t state = ncclInProgress;
  while (true) {
    check(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
    check(state, name);
    if (state != ncclInProgress) return;
    if (seconds_ > 0 && Clock::now() - start > std::chrono::duration<double>(seconds_)) {
      throw TimeOut(std::string(name) + ": not over after " + std::to_string(seconds_) +
                    " s on rank " + std::to_string(rank_));
    }
    std::this_thread::sleep_for(kNap);
  }
}

template <class Post>
std::shared_ptr<Work> Clique::start(const char* name, const Post& post) {
  check(cudaSetDevice(device_), "cudaSetDevice");
  follow(stream_, cudaStreamLegacy);
  check(post(), name);
  settle(name);
  auto pending = std::make_shared<Pending>(*this, name);
  follow(cudaStreamLegacy, stream_);
  return pending;
}

std::shared_ptr<Work> Clique::all_reduce(const Span& x, std::uintptr_t y, ncclRedOp_t op) {
  return start("all_reduce", [&] {
    return ncclAllReduce(reinterpret_cast<const void*>(x.data), reinterpret_cast<void*>(y),
                         static_cast<std::size_t>(x.n), x.dtype, op, comm_, stream_);
  });
}

std::shared_ptr<Work> Clique::reduce_scatter(const Span& x, std::uintptr_t y, ncclRedOp_t op) {
  return start("reduce_scatter", [&] {
    return ncclReduceScatter(reinterpret_cast<const void*>(x.data), reinterpret_cast<void*>(y),
                             static_cast<std::size_t>(x.n / size_), x.dtype, op, comm_, stream_);
  });
}

std::shared_ptr<Work> Clique::all_gather(const Span& x, std::uintptr_t y) {
  return start("all_gather", [&] {
    return ncclAllGather(reinterpret_cast<const void*>(x.data), reinterpret_cast<void*>(y),
                         static_cast<std::size_t>(x.n), x.dtype, comm_, stream_);
  });
}

std::shared_ptr<Work> Clique::all_to_all(const Span& x, std::uintptr_t y) {
  const auto n = static_cast<std::size_t>(x.n / size_);
  const std::size_t bytes = n * size_of(x.dtype);
  return start("all_to_all", [&] {
    check(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < size_; ++r) {
      const std::uintptr_t offset = static_cast<std::size_t>(r) * bytes;
      check(ncclSend(reinterpret_cast<const void*>(x.data + offset), n, x.dtype, r, comm_, stream_),
            "ncclSend");
      check(ncclRecv(reinterpret_cast<void*>(y + offset), n, x.dtype, r, comm_, stream_),
            "ncclRecv");
    }
    return ncclGroupEnd();
  });
}

std::shared_ptr<Work> Clique::broadcast(const Span& x, int root) {
  return start("broadcast", [&] {
    void* data = reinterpret_cast<void*>(x.data);
    return ncclBroadcast(data, data, static_cast<std::size_t>(x.n), x.dtype, root, comm_, stream_);
  });
}

}  // namespace renga::nccl
