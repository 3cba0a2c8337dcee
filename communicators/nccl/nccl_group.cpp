#include "nccl/nccl_group.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

#include "devices/cuda/event.h"
#include "devices/gil_release.h"
#include "transport/errors.h"

namespace renga::nccl {

using cuda::Event;

namespace {

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

bool has_failed(ncclResult_t result) { return result != ncclSuccess && result != ncclInProgress; }

// Calls call(i) for i < n as one group, until one fails.
template <class Call>
ncclResult_t in_group(std::size_t n, const Call& call) {
  ncclResult_t result = ncclGroupStart();
  if (has_failed(result)) return result;
  for (std::size_t i = 0; i < n && !has_failed(result); ++i) result = call(i);
  const ncclResult_t end = ncclGroupEnd();
  return has_failed(result) ? result : end;
}

// What NCCL's functions take besides the arrays.
struct Ranks {
  ncclComm_t comm;
  cudaStream_t stream;
  int size;
};

void* address(const DeviceArray& x, std::size_t offset = 0) {
  return reinterpret_cast<void*>(x.data + offset);
}

// Of several arrays by one launch.
ncclResult_t all_reduce(const Ranks& ranks, const DeviceArguments& a) {
  return in_group(a.xs.size(), [&](std::size_t i) {
    return ncclAllReduce(address(a.xs[i]), address(a.ys[i]), a.xs[i].n, a.xs[i].dtype, a.op,
                         ranks.comm, ranks.stream);
  });
}

ncclResult_t reduce_scatter(const Ranks& ranks, const DeviceArguments& a) {
  const DeviceArray &x = a.xs.at(0), &y = a.ys.at(0);
  return ncclReduceScatter(address(x), address(y), y.n, x.dtype, a.op, ranks.comm, ranks.stream);
}

ncclResult_t all_gather(const Ranks& ranks, const DeviceArguments& a) {
  const DeviceArray &x = a.xs.at(0), &y = a.ys.at(0);
  return ncclAllGather(address(x), address(y), x.n, x.dtype, ranks.comm, ranks.stream);
}

ncclResult_t all_to_all(const Ranks& ranks, const DeviceArguments& a) {
  const DeviceArray &x = a.xs.at(0), &y = a.ys.at(0);
  const std::size_t n = x.n / static_cast<std::size_t>(ranks.size), bytes = n * size_of(x.dtype);
  return in_group(2 * static_cast<std::size_t>(ranks.size), [&](std::size_t i) {
    const int rank = static_cast<int>(i / 2);
    const std::size_t offset = i / 2 * bytes;
    if (i % 2 == 1) {
      return ncclRecv(address(y, offset), n, x.dtype, rank, ranks.comm, ranks.stream);
    }
    return ncclSend(address(x, offset), n, x.dtype, rank, ranks.comm, ranks.stream);
  });
}

ncclResult_t broadcast(const Ranks& ranks, const DeviceArguments& a) {
  const DeviceArray &x = a.xs.at(0), &y = a.ys.at(0);
  return ncclBroadcast(address(x), address(y), x.n, x.dtype, a.root, ranks.comm, ranks.stream);
}

struct Collective {
  const char* name;
  ncclResult_t (*launch)(const Ranks& ranks, const DeviceArguments& arguments);
};

// Those of collectives/collectives.cpp whose arrays have one shape on all ranks.
constexpr Collective kCollectives[] = {
    {"all_reduce", all_reduce}, {"reduce_scatter", reduce_scatter}, {"all_gather", all_gather},
    {"all_to_all", all_to_all}, {"broadcast", broadcast},
};

// The stream on which this thread computes on a device.
cudaStream_t compute_stream(int device) {
  return static_cast<cudaStream_t>(current_stream(device));
}

TimeoutError time_out(const char* name, double seconds, int rank) {
  return TimeoutError(std::string(name) + ": not complete after " + std::to_string(seconds) +
                      " s on rank " + std::to_string(rank));
}

// `later` waits for the work that is on `earlier` now.
void wait_for_stream(cudaStream_t later, cudaStream_t earlier) {
  const Event event(cudaEventDisableTiming);
  event.record(earlier);
  event.hold(later);
}

}  // namespace

void check(ncclResult_t result, const char* call) {
  if (!has_failed(result)) return;
  throw std::runtime_error(std::string(call) + ": " + ncclGetErrorString(result));
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

// A collective on the stream.
struct NcclGroup::InFlight {
  explicit InFlight(const char* name) : name(name) {}
  const char* name;
  Event begun{cudaEventDisableTiming}, done{cudaEventDisableTiming};
  std::optional<Clock::time_point> since;  // when it was first seen to have begun
  bool is_complete = false;
};

class NcclGroup::CollectiveWork final : public Work {
 public:
  CollectiveWork(std::shared_ptr<NcclGroup> group, std::shared_ptr<InFlight> collective)
      : group_(std::move(group)), collective_(std::move(collective)) {}

  bool test() override {
    const std::lock_guard lock(group_->mutex_);
    group_->poll_unless_failed();
    if (collective_->is_complete) return true;  // whatever became of the other ranks since
    group_->rethrow_failure();
    return false;
  }

  void wait(double timeout_seconds) override {
    if (timeout_seconds > 0) wait_on_host(timeout_seconds);
    const std::lock_guard lock(group_->mutex_);
    if (collective_->is_complete) return;
    group_->rethrow_failure();
    RENGA_CUDA(cudaSetDevice(group_->device_));
    collective_->done.hold(compute_stream(group_->device_));
  }

 private:
  void wait_on_host(double timeout_seconds) {
    const GilRelease lend;
    const auto start = Clock::now();
    while (!test()) {
      if (Clock::now() - start > std::chrono::duration<double>(timeout_seconds)) {
        throw time_out(collective_->name, timeout_seconds, group_->rank_);
      }
      std::this_thread::sleep_for(kPollInterval);
    }
  }

  std::shared_ptr<NcclGroup> group_;
  std::shared_ptr<InFlight> collective_;
};

NcclGroup::NcclGroup(const std::string& unique_id, int rank, int size, int device,
                     double timeout_seconds)
    : rank_(rank), size_(size), device_(device), timeout_seconds_(timeout_seconds) {
  ncclUniqueId id;
  if (unique_id.size() != sizeof id.internal) {
    throw std::invalid_argument("nccl: expected a unique id of NCCL's size");
  }
  std::memcpy(id.internal, unique_id.data(), sizeof id.internal);
  RENGA_CUDA(cudaSetDevice(device_));
  cudaStream_t stream = nullptr;
  RENGA_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  stream_.reset(stream);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // so that the time-out applies
  ncclComm_t comm = nullptr;
  check(ncclCommInitRankConfig(&comm, size, id, rank, &config), "ncclCommInitRank");
  comm_.reset(comm);
  wait_for_launch("ncclCommInitRank");
  check_.emplace(device_, [this] { throw_failure_once(); });
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

NcclGroup::~NcclGroup() {
  const GilRelease lend;
  check_.reset();
  std::unique_lock lock(mutex_);
  while (!in_flight_.empty()) launched_.wait_for(lock, kPollInterval);  // for the watcher
}

void NcclGroup::throw_failure() {
  const std::lock_guard lock(mutex_);
  poll_unless_failed();
  rethrow_failure();
}

void NcclGroup::throw_failure_once() {
  const std::lock_guard lock(mutex_);
  poll_unless_failed();
  if (failure_ && !std::exchange(is_reported_, true)) rethrow_failure();
}

void NcclGroup::rethrow_failure() const {
  if (failure_) std::rethrow_exception(failure_);
}

void NcclGroup::poll() {
  while (!in_flight_.empty()) {
    const cudaError_t status = cudaEventQuery(in_flight_.front()->done.get());
    if (status == cudaErrorNotReady) break;
    cuda::check(status, in_flight_.front()->name);
    in_flight_.front()->is_complete = true;
    in_flight_.pop_front();
  }
  if (in_flight_.empty()) return;
  InFlight& first = *in_flight_.front();
  ncclResult_t error = ncclSuccess;
  check(ncclCommGetAsyncError(comm(), &error), "ncclCommGetAsyncError");
  check(error, first.name);
  if (!first.since && first.begun.is_over()) first.since = Clock::now();
  const std::chrono::duration<double> limit(timeout_seconds_);
  if (timeout_seconds_ > 0 && first.since && Clock::now() - *first.since > limit) {
    throw time_out(first.name, timeout_seconds_, rank_);
  }
}

void NcclGroup::poll_unless_failed() {
  if (failure_) return;
  try {
    poll();
  } catch (const std::exception&) {
    failure_ = std::current_exception();
    comm_.reset();  // what is on the stream ends, without results
    in_flight_.clear();
  }
}

void NcclGroup::watch(const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kInterval{10};
  cudaSetDevice(device_);
  std::unique_lock lock(mutex_);
  while (launched_.wait(lock, stop, [this] { return !in_flight_.empty(); })) {
    poll_unless_failed();
    launched_.wait_for(lock, stop, kInterval, [] { return false; });
  }
}

void NcclGroup::wait_for_launch(const char* name) {
  const GilRelease lend;
  const auto start = Clock::now();
  ncclResult_t state = ncclInProgress;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      rethrow_failure();
      check(ncclCommGetAsyncError(comm(), &state), "ncclCommGetAsyncError");
    }
    check(state, name);
    if (state != ncclInProgress) return;
    if (timeout_seconds_ > 0 &&
        Clock::now() - start > std::chrono::duration<double>(timeout_seconds_)) {
      throw time_out(name, timeout_seconds_, rank_);
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

std::shared_ptr<Work> NcclGroup::call(const std::string& collective,
                                      const DeviceArguments& arguments) {
  const auto* const row = std::ranges::find(kCollectives, collective, &Collective::name);
  if (row == std::end(kCollectives)) {
    throw std::invalid_argument("nccl: expected a collective, got " + collective);
  }
  RENGA_CUDA(cudaSetDevice(device_));
  auto started = std::make_shared<InFlight>(row->name);
  {
    const std::lock_guard lock(mutex_);
    poll_unless_failed();
    rethrow_failure();
    wait_for_stream(stream(), compute_stream(device_));
    started->begun.record(stream());
    check(row->launch({comm(), stream(), size_}, arguments), row->name);
  }
  wait_for_launch(row->name);
  const std::lock_guard lock(mutex_);
  started->done.record(stream());
  in_flight_.push_back(started);
  launched_.notify_all();
  return std::make_shared<CollectiveWork>(shared_from_this(), std::move(started));
}

}  // namespace renga::nccl
