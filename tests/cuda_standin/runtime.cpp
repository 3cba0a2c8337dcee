// Devices, errors, streams and events.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "standin.h"

using namespace cuda_standin;
using Clock = std::chrono::steady_clock;

struct CudaStandinStream {
  int device = 0;
  CudaStandinGraph* capture = nullptr;
  std::deque<Operation> operations;
  std::uint64_t begun = 0;  // operations that were ever added
  std::uint64_t done = 0;
};

struct CudaStandinEvent {
  int device = 0;
  std::uint64_t recorded = 0, done = 0;  // records added to streams, and those that ran
  Clock::time_point time;
  const CudaStandinGraph* capture = nullptr;  // in which it was last recorded
};

namespace cuda_standin {
namespace {

struct State {
  std::recursive_mutex mutex;
  std::condition_variable_any added;
  std::mt19937_64 generator{1};
  CudaStandinStream defaults[kDevices];
  std::vector<CudaStandinStream*> streams;
  std::set<CudaStandinEvent*> events;
  std::int64_t calls = 0, failing_call = -1, waits = 0, launches = 0;
  cudaError_t injected = cudaErrorLaunchFailure;
  int devices = kDevices;
  std::map<const void*, std::size_t> most_shared;  // of kernels that may have more than others
};

State& state() {
  static auto* const all = [] {
    auto* fresh = new State;  // never destroyed: other threads may use it until the process ends
    for (int i = 0; i < kDevices; ++i) {
      fresh->defaults[i].device = i;
      fresh->streams.push_back(&fresh->defaults[i]);
    }
    return fresh;
  }();
  return *all;
}

thread_local int device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local bool counts_waits = true;

CudaStandinStream& stream_of(cudaStream_t stream) {
  return stream != nullptr ? *stream : state().defaults[device];
}

// Runs the first operation of a random stream; false where none is ready.
bool run_one() {
  std::vector<CudaStandinStream*> ready;
  for (CudaStandinStream* stream : state().streams) {
    if (stream->operations.empty()) continue;
    const Operation& first = stream->operations.front();
    if (!first.ready || first.ready()) ready.push_back(stream);
  }
  if (ready.empty()) return false;
  CudaStandinStream& stream = *ready[random_below(ready.size())];
  const Operation operation = std::move(stream.operations.front());
  stream.operations.pop_front();
  operation.run();
  ++stream.done;
  return true;
}

}  // namespace

std::recursive_mutex& mutex() { return state().mutex; }

void require_known(cudaStream_t stream) {
  const auto& all = state().streams;
  const bool is_known = stream == nullptr || std::find(all.begin(), all.end(), stream) != all.end();
  if (!is_known) fault("a stream is used that was destroyed");
}

CudaStandinGraph*& capture_of(cudaStream_t stream) { return stream_of(stream).capture; }

void count_launch() {
  const std::lock_guard lock(mutex());
  ++state().launches;
}

void fault(const char* text) {
  std::fprintf(stderr, "CUDA stand-in: %s\n", text);
  std::abort();
}

cudaError_t failed(cudaError_t error) { return last_error = error; }

cudaError_t begin_call() {
  const std::lock_guard lock(mutex());
  return state().calls++ == state().failing_call ? failed(state().injected) : cudaSuccess;
}

std::mt19937_64& random() { return state().generator; }
std::uint64_t random_below(std::uint64_t n) { return random()() % n; }
int current_device() { return device; }
int device_of(cudaStream_t stream) { return stream_of(stream).device; }

cudaError_t enqueue(cudaStream_t stream, Operation operation) {
  constexpr std::uint64_t kMostLate = 200;  // operations of a stream, as its queue is limited
  const std::lock_guard lock(mutex());
  require_known(stream);
  CudaStandinStream& to = stream_of(stream);
  if (to.device != device) return failed(cudaErrorInvalidResourceHandle);
  if (to.capture != nullptr) {
    add_to_graph(*to.capture, std::move(operation));
    return cudaSuccess;
  }
  to.operations.push_back(std::move(operation));
  ++to.begun;
  state().added.notify_all();
  if (random_below(8) == 0 || to.operations.size() > kMostLate) {
    for (std::uint64_t n = random_below(to.operations.size() + 1); n > 0 && run_one(); --n) {
    }
    end_access();
  }
  return cudaSuccess;
}

void wake() { state().added.notify_all(); }

void run_until(const std::function<bool()>& done) {
  std::unique_lock lock(mutex());
  state().waits += counts_waits;
  while (!done()) {
    if (run_one()) continue;
    end_access();
    // What is first on each stream waits for an operation that another thread has yet to add.
    if (state().added.wait_for(lock, std::chrono::minutes(1)) == std::cv_status::timeout) {
      fault("a stream waits for operations that are never added");
    }
  }
  end_access();
}

static std::size_t most_shared(const void* kernel) {
  const std::lock_guard lock(mutex());
  const auto found = state().most_shared.find(kernel);
  return found == state().most_shared.end() ? kShared : found->second;
}

cudaError_t set_most_shared(const void* kernel, int bytes) {
  if (const cudaError_t error = begin_call()) return error;
  if (bytes < 0 || static_cast<std::size_t>(bytes) > kMostShared) {
    return failed(cudaErrorInvalidValue);
  }
  const std::lock_guard lock(mutex());
  state().most_shared[kernel] = static_cast<std::size_t>(bytes);
  return cudaSuccess;
}

cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, std::function<void()> body,
                   std::function<bool(cudaStream_t)> are_readable) {
  if (!are_readable(config.stream)) return cudaErrorIllegalAddress;
  if (const cudaError_t error = begin_call()) return error;
  const dim3 &grid = config.gridDim, &block = config.blockDim;
  const auto threads = std::uint64_t{block.x} * block.y * block.z;
  const bool fits = threads >= 1 && threads <= 1024 && block.z <= 64 && grid.x >= 1 &&
                    grid.x < 1u << 31 && grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 &&
                    grid.z <= 65535 && config.dynamicSmemBytes <= most_shared(kernel);
  if (!fits) return failed(cudaErrorInvalidConfiguration);
  const int where = device_of(config.stream);
  count_launch();
  return enqueue(config.stream, {[=, body = std::move(body)] {
                                   const Access memory(where);
                                   run_grid(config, body);
                                 },
                                 {},
                                 std::move(are_readable)});
}

}  // namespace cuda_standin

// Tests call these.
extern "C" {
void cuda_standin_seed(std::uint64_t seed) {
  const std::lock_guard lock(mutex());
  state().generator.seed(seed);
}
void cuda_standin_devices(int count) { state().devices = count; }
// The call after `more` others fails.
void cuda_standin_fail(std::int64_t more, int error) {
  const std::lock_guard lock(mutex());
  state().failing_call = more < 0 ? -1 : state().calls + more;
  state().injected = static_cast<cudaError_t>(error);
}
std::int64_t cuda_standin_calls() { return state().calls; }
// How often the program waited for the device.
std::int64_t cuda_standin_waits() { return state().waits; }
// How many kernels and graphs it launched.
std::int64_t cuda_standin_launches() { return state().launches; }
// Whether waits of this thread are counted: those of what would not wait on hardware are not.
void cuda_standin_count_waits(int counted) { counts_waits = counted != 0; }
// Operations that have not run yet.
std::int64_t cuda_standin_pending() {
  const std::lock_guard lock(mutex());
  std::int64_t pending = 0;
  for (const CudaStandinStream* stream : state().streams) pending += stream->operations.size();
  return pending;
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    case cudaErrorCapturedEvent:
      return "operation not permitted on an event last recorded in a capturing stream";
  }
  return "unrecognized error code";
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaDriverGetVersion(int* version) {
  *version = state().devices == 0 ? 0 : 13000;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = state().devices;
  return *count == 0 ? failed(cudaErrorInsufficientDriver) : begin_call();
}

cudaError_t cudaGetDevice(int* current) {
  *current = device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int index) {
  if (const cudaError_t error = begin_call()) return error;
  if (index < 0 || index >= state().devices) return failed(cudaErrorInvalidDevice);
  device = index;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = begin_call()) return error;
  const int mine = device;
  for (const CudaStandinStream* stream : state().streams) {
    if (stream->device != mine || stream->capture == nullptr) continue;
    return refuse_in_capture(*stream->capture, cudaErrorStreamCaptureUnsupported);
  }
  run_until([mine] {
    for (const CudaStandinStream* stream : state().streams) {
      if (stream->device == mine && !stream->operations.empty()) return false;
    }
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (const cudaError_t error = begin_call()) return error;
  if (flags != cudaStreamNonBlocking) fault("streams that the default stream waits for are slow");
  const std::lock_guard lock(mutex());
  *stream = new CudaStandinStream;
  (*stream)->device = device;
  state().streams.push_back(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  // The real one returns at once and frees the stream when it is idle.
  run_until([stream] { return stream->operations.empty(); });
  const std::lock_guard lock(mutex());
  std::erase(state().streams, stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = begin_call()) return error;
  require_known(stream);
  const CudaStandinStream& all = stream_of(stream);
  if (all.capture != nullptr) {
    return refuse_in_capture(*all.capture, cudaErrorStreamCaptureUnsupported);
  }
  run_until([&all, end = all.begun] { return all.done >= end; });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (const cudaError_t error = begin_call()) return error;
  const std::lock_guard lock(mutex());
  *event = new CudaStandinEvent;
  (*event)->device = device;
  state().events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock(mutex());
  // Operations that are recorded or wait still use it: it is not freed.
  return state().events.erase(event) ? cudaSuccess : failed(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t error = begin_call()) return error;
  const std::lock_guard lock(mutex());
  if (!state().events.contains(event)) return failed(cudaErrorInvalidResourceHandle);
  require_known(stream);
  if (event->device != device_of(stream)) return failed(cudaErrorInvalidResourceHandle);
  event->capture = stream_of(stream).capture;
  if (event->capture != nullptr) return cudaSuccess;
  ++event->recorded;
  return enqueue(stream, {[event, number = event->recorded] {
                            event->done = std::max(event->done, number);
                            event->time = Clock::now();
                          },
                          {}});
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t error = begin_call()) return error;
  const std::lock_guard lock(mutex());
  if (!state().events.contains(event)) return failed(cudaErrorInvalidResourceHandle);
  require_known(stream);
  CudaStandinGraph* const capture = stream_of(stream).capture;
  if (capture != event->capture) {
    if (capture == nullptr) return failed(cudaErrorStreamCaptureIsolation);
    return refuse_in_capture(*capture, cudaErrorStreamCaptureIsolation);
  }
  if (capture != nullptr) return cudaSuccess;  // a graph's operations have one order
  return enqueue(stream,
                 {[] {}, [event, number = event->recorded] { return event->done >= number; }});
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = begin_call()) return error;
  const std::lock_guard lock(mutex());
  if (!state().events.contains(event)) return failed(cudaErrorInvalidResourceHandle);
  if (event->capture != nullptr) return failed(cudaErrorCapturedEvent);
  run_one();  // time goes on with every query
  end_access();
  return event->done >= event->recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = begin_call()) return error;
  if (event->capture != nullptr) return failed(cudaErrorCapturedEvent);
  run_until([event, number = event->recorded] { return event->done >= number; });
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start->done < start->recorded || end->done < end->recorded) return failed(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}
}
