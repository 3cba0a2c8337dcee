#include "nccl/nccl_group.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include "collectives/buffers.h"
#include "devices/cuda/event.h"
#include "devices/cuda/use.h"
#include "devices/gil_release.h"
#include "transport/errors.h"

namespace renga::nccl {

using cuda::Event, cuda::Use;

namespace {

constexpr std::chrono::microseconds kPollInterval{50};

bool has_failed(ncclResult_t result) { return result != ncclSuccess && result != ncclInProgress; }

// Throws std::runtime_error with the error text of NCCL.
void check(ncclResult_t result, const char* call) {
  if (!has_failed(result)) return;
  throw std::runtime_error(std::string(call) + ": " + ncclGetErrorString(result));
}

// Calls call(i) for i < n as one group, until one fails.
template <class Call>
ncclResult_t in_group(std::size_t n, const Call& call) {
  ncclResult_t result = ncclGroupStart();
  if (has_failed(result)) return result;
  for (std::size_t i = 0; i < n && !has_failed(result); ++i) result = call(i);
  const ncclResult_t end = ncclGroupEnd();
  return has_failed(result) ? result : end;
}

// Throws InvalidType for one that NCCL does not reduce.
ncclDataType_t reduced_dtype(const char* name, Dtype dtype) {
  switch (dtype) {
    case Dtype::bool_:
    case Dtype::uint8:
      return ncclUint8;
    case Dtype::uint32:
      return ncclUint32;
    case Dtype::uint64:
      return ncclUint64;
    case Dtype::int8:
      return ncclInt8;
    case Dtype::int32:
      return ncclInt32;
    case Dtype::int64:
      return ncclInt64;
    case Dtype::float16:
      return ncclFloat16;
    case Dtype::bfloat16:
      return ncclBfloat16;
    case Dtype::float32:
      return ncclFloat32;
    case Dtype::float64:
      return ncclFloat64;
    default:
      fail(name, ": expected a dtype that NCCL reduces, got ", dtype);
  }
}

ncclRedOp_t reduction_of(const Arguments& arguments) {
  switch (arguments.reduction) {
    case ReduceOp::sum:
      return ncclSum;
    case ReduceOp::mean:
      return ncclAvg;
    case ReduceOp::max:
      return ncclMax;
    case ReduceOp::min:
      return ncclMin;
    default:
      return ncclProd;
  }
}

std::size_t elements(const Array& x) { return static_cast<std::size_t>(x.size()); }
std::size_t bytes(const Array& x) { return static_cast<std::size_t>(x.size() * x.itemsize()); }

// Whether they lie one after the other and have the size of `x`.
bool are_consecutive(const std::vector<Array>& ys, const Array& x) {
  for (std::size_t r = 0; r < ys.size(); ++r) {
    if (bytes(ys[r]) != bytes(x) || ys[r].data() != ys[0].data() + r * bytes(x)) return false;
  }
  return true;
}

// The stream on which this thread computes on a device.
cudaStream_t compute_stream(Device device) {
  return static_cast<cudaStream_t>(current_stream(device.index));
}

// The stream on which this thread computes meanwhile.
class StreamScope {
 public:
  StreamScope(Device device, cudaStream_t stream)
      : device_(device), before_(compute_stream(device)) {
    set_current_stream(device.index, stream);
  }
  ~StreamScope() { set_current_stream(device_.index, before_); }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Device device_;
  cudaStream_t before_;
};

// The watcher could not see when a collective that is part of a graph begins and ends.
void require_no_recording(const char* name, cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  // The default stream cannot be recorded.
  if (stream != nullptr) RENGA_CUDA(cudaStreamIsCapturing(stream, &status));
  if (status == cudaStreamCaptureStatusNone) return;
  throw std::runtime_error(std::string(name) +
                           ": expected nothing but kernels in a recorded graph, got a collective");
}

TimeoutError time_out(const std::string& name, double seconds, int rank) {
  return TimeoutError(name + ": not complete after " + std::to_string(seconds) + " s on rank " +
                      std::to_string(rank));
}

// `later` waits for the work that is on `earlier` now.
void wait_for_stream(cudaStream_t later, cudaStream_t earlier) {
  const Event event(cudaEventDisableTiming);
  event.record(earlier);
  event.hold(later);
}

}  // namespace

std::string unavailable_reason() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) return std::string("no GPU: ") + cudaGetErrorString(status);
  return count == 0 ? "no GPU" : "";
}

ncclUniqueId create_unique_id() {
  ncclUniqueId id;
  check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  return id;
}

namespace {

const DeviceLibrary kLibrary{sizeof(ncclUniqueId),
                             [](std::byte* id) {
                               const ncclUniqueId created = create_unique_id();
                               std::memcpy(id, &created, sizeof created);
                             },
                             [](const std::byte* id, int rank, int size, Device device,
                                double timeout_seconds) -> std::shared_ptr<DeviceCollectives> {
                               ncclUniqueId unique_id;
                               std::memcpy(&unique_id, id, sizeof unique_id);
                               return std::make_shared<NcclGroup>(unique_id, rank, size, device,
                                                                  timeout_seconds);
                             }};
[[maybe_unused]] const bool is_registered = (device_library = &kLibrary, true);

}  // namespace

// A collective on the stream.
struct NcclGroup::InFlight {
  explicit InFlight(const char* name) : name(name) {}
  std::string name;
  Event begun{cudaEventDisableTiming}, done{cudaEventDisableTiming};
  std::optional<Clock::time_point> since;  // when it was first seen to have begun
  bool is_complete = false;
};

class NcclGroup::CollectiveWork final : public Work {
 public:
  CollectiveWork(std::shared_ptr<NcclGroup> group, std::shared_ptr<InFlight> collective,
                 std::vector<Array> arrays)
      : group_(std::move(group)), collective_(std::move(collective)), arrays_(std::move(arrays)) {}
  // What gets the memory of the arrays next comes after the collective. Any thread may end it.
  ~CollectiveWork() override {
    if (is_waited_for_) return;
    const Use use(group_->device_);
    cudaStreamWaitEvent(compute_stream(group_->device_), collective_->done.get(), 0);
  }

  bool test() override {
    const std::lock_guard lock(group_->mutex_);
    group_->poll_unless_failed();
    // Whatever became of the other ranks since.
    if (collective_->is_complete) return is_waited_for_ = true;
    group_->rethrow_failure();
    return false;
  }

  void wait(double timeout_seconds) override {
    if (timeout_seconds > 0) wait_on_host(timeout_seconds);
    const std::lock_guard lock(group_->mutex_);
    is_waited_for_ = true;
    if (collective_->is_complete) return;
    group_->rethrow_failure();
    const Use use(group_->device_);
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
  std::vector<Array> arrays_;
  bool is_waited_for_ = false;
};

NcclGroup::NcclGroup(const ncclUniqueId& id, int rank, int size, Device device,
                     double timeout_seconds)
    : rank_(rank), size_(size), device_(device), timeout_seconds_(timeout_seconds) {
  const Use use(device_);
  cudaStream_t stream = nullptr;
  RENGA_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  stream_.reset(stream);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // so that the time-out applies
  ncclComm_t comm = nullptr;
  check(ncclCommInitRankConfig(&comm, size, id, rank, &config), "ncclCommInitRank");
  comm_.reset(comm);
  wait_for_launch("ncclCommInitRank");
  check_.emplace(device_.index, [this] { throw_failure_once(); });
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

NcclGroup::~NcclGroup() {
  const GilRelease lend;
  check_.reset();
  std::unique_lock lock(mutex_);
  while (!in_flight_.empty()) launched_.wait_for(lock, kPollInterval);  // for the watcher
  release_memory_of_stream(stream(), device_);
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
    cuda::check(status, in_flight_.front()->name.c_str());
    in_flight_.front()->is_complete = true;
    in_flight_.pop_front();
  }
  if (in_flight_.empty()) return;
  InFlight& first = *in_flight_.front();
  ncclResult_t error = ncclSuccess;
  check(ncclCommGetAsyncError(comm(), &error), "ncclCommGetAsyncError");
  check(error, first.name.c_str());
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
  const Use use(device_);
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

template <class NcclCall>
void NcclGroup::launch(const CollectiveContext& context, std::size_t n, const NcclCall& call) {
  {
    const std::lock_guard lock(mutex_);
    rethrow_failure();
    check(in_group(n, call), context.call.op);
  }
  wait_for_launch(context.call.op);
}

void NcclGroup::all_reduce(const CollectiveContext& context, const Arguments& arguments) {
  const Dtype dtype = arguments.communication_dtype();
  std::vector<Array> xs = arguments.xs, ys = arguments.ys;
  if (dtype != arguments.dtype()) {
    for (Array& x : xs) x = cast(x, dtype);
    ys = xs;
  }
  const ncclDataType_t type = reduced_dtype(context.call.op, dtype);
  launch(context, xs.size(), [&](std::size_t i) {
    return ncclAllReduce(xs[i].data(), ys[i].data(), elements(xs[i]), type, reduction_of(arguments),
                         comm(), stream());
  });
  copy_received(ys, arguments.ys);
}

void NcclGroup::reduce_scatter(const CollectiveContext& context, const Arguments& arguments) {
  const Array &x = arguments.xs[0], &y = arguments.ys[0];
  const ncclDataType_t type = reduced_dtype(context.call.op, arguments.dtype());
  launch(context, 1, [&](std::size_t) {
    return ncclReduceScatter(x.data(), y.data(), elements(y), type, reduction_of(arguments), comm(),
                             stream());
  });
}

void NcclGroup::all_gather(const CollectiveContext& context, const Arguments& arguments) {
  const Array& x = arguments.xs[0];
  const std::vector<Array>& ys = arguments.ys;
  if (!are_consecutive(ys, x)) return exchange(context, std::vector<Array>(ys.size(), x), ys);
  launch(context, 1, [&](std::size_t) {
    return ncclAllGather(x.data(), ys[0].data(), bytes(x), ncclInt8, comm(), stream());
  });
}

void NcclGroup::all_to_all(const CollectiveContext& context, const Arguments& arguments) {
  exchange(context, arguments.xs, arguments.ys);
}

void NcclGroup::exchange(const CollectiveContext& context, const std::vector<Array>& xs,
                         const std::vector<Array>& ys) {
  launch(context, 2 * xs.size(), [&](std::size_t i) {
    const bool sends = i % 2 == 0;
    const Array& array = (sends ? xs : ys)[i / 2];
    if (!array.defined()) return ncclSuccess;
    const int peer = static_cast<int>(i / 2);
    return sends ? ncclSend(array.data(), bytes(array), ncclInt8, peer, comm(), stream())
                 : ncclRecv(array.data(), bytes(array), ncclInt8, peer, comm(), stream());
  });
}

void NcclGroup::broadcast(const CollectiveContext& context, const Arguments& arguments) {
  const Array& x = (arguments.xs.empty() ? arguments.ys : arguments.xs)[0];
  launch(context, 1, [&](std::size_t) {
    return ncclBroadcast(x.data(), x.data(), bytes(x), ncclInt8, static_cast<int>(*arguments.root),
                         comm(), stream());
  });
}

std::shared_ptr<Work> NcclGroup::start(const CollectiveContext& context, std::vector<Array> arrays,
                                       const std::function<void()>& launch) {
  const Use use(device_);
  require_no_recording(context.call.op, compute_stream(device_));
  throw_failure();
  auto started = std::make_shared<InFlight>(context.call.op);
  {
    const cudaStream_t earlier = compute_stream(device_);
    const StreamScope scope(device_, stream());  // copies of arrays are made on it, too
    wait_for_stream(stream(), earlier);
    started->begun.record(stream());
    launch();
    started->done.record(stream());
  }
  const std::lock_guard lock(mutex_);
  in_flight_.push_back(started);
  launched_.notify_all();
  return std::make_shared<CollectiveWork>(shared_from_this(), std::move(started),
                                          std::move(arrays));
}

}  // namespace renga::nccl
