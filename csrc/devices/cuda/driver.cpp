#include "devices/cuda/cuda.h"
#include "devices/cuda/event.h"
#include "devices/cuda/frees.h"
#include "devices/cuda/index_fault.h"
#include "devices/cuda/recording.h"
#include "devices/gil_release.h"
#include "devices/streams.h"

namespace renga::cuda {
namespace {

class CudaDriver final : public Driver {
 public:
  std::string name() const override { return "cuda"; }
  int count() const override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) == cudaSuccess) return devices;
    cudaGetLastError();
    return 0;
  }

  void* reserve(std::size_t bytes, int index) override {
    const Use use(index);
    void* block = nullptr;
    const cudaError_t status = cudaMalloc(&block, bytes);
    if (status != cudaErrorMemoryAllocation) {
      check(status, "cudaMalloc");
      return block;
    }
    cudaGetLastError();  // or the next call would report it once more
    return nullptr;
  }
  void release(void* block, std::size_t, int index) override { frees_of(index).add(block); }
  void finish_releases(int index) override {
    const Use use(index);
    frees_of(index).free_all();
  }

  void copy_from_host(void* to, const void* from, std::size_t bytes, int index) override {
    move(to, from, bytes, index, cudaMemcpyHostToDevice);
  }
  void copy_to_host(void* to, const void* from, std::size_t bytes, int index) override {
    move(to, from, bytes, index, cudaMemcpyDeviceToHost);
  }
  void copy_within(void* to, const void* from, std::size_t bytes, int index) override {
    move(to, from, bytes, index, cudaMemcpyDeviceToDevice);
  }
  void synchronize(int index) override {
    require_no_recording("a wait of the host");
    const GilRelease wait;
    const Use use(index);
    RENGA_CUDA(cudaDeviceSynchronize());
    throw_faults(index);
  }

 private:
  // Copies to the host end before the call returns, others after what precedes them on the stream.
  static void move(void* to, const void* from, std::size_t bytes, int index, cudaMemcpyKind kind) {
    if (bytes == 0) return;
    if (kind != cudaMemcpyDeviceToDevice) require_no_recording("a copy from or to the host");
    const GilRelease wait;
    const Use use(index);
    RENGA_CUDA(cudaMemcpyAsync(to, from, bytes, kind, stream()));
    if (kind != cudaMemcpyDeviceToHost) return;
    RENGA_CUDA(cudaStreamSynchronize(stream()));
    throw_faults(index);
  }
  static void throw_faults(int index) {
    throw_failures(index);
    throw_index_fault(index);
  }
};

// What goes wrong shows in the calls that follow. Streams that are recorded wait for no others.
void order(void* later, void* earlier, int index) {
  if (current_recording() != nullptr) return;
  const Use use(index);
  cudaEvent_t event = nullptr;
  if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) return;
  cudaEventRecord(event, static_cast<cudaStream_t>(earlier));
  cudaStreamWaitEvent(static_cast<cudaStream_t>(later), event, 0);
  cudaEventDestroy(event);
}

}  // namespace

std::uint8_t number() {
  // Never destroyed: storages may be released after the end of main().
  static const std::uint8_t registered = [] {
    order_streams = &order;
    return register_driver(new CudaDriver);
  }();
  return registered;
}

void require_devices() {
  int devices = 0, driver = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaSuccess && devices > 0) return;
  cudaGetLastError();
  cudaDriverGetVersion(&driver);
  const bool has_none = status == cudaSuccess || status == cudaErrorNoDevice;
  const char* reason = driver == 0 ? "no driver"
                       : has_none  ? "no device"
                                   : cudaGetErrorString(status);
  throw std::runtime_error(std::string("expected a CUDA device and its driver, got ") + reason);
}

cudaStream_t stream() {
  int index = 0;
  cudaGetDevice(&index);
  return static_cast<cudaStream_t>(current_stream(index));
}

void set_stream(int index, cudaStream_t next) {
  const auto before = static_cast<cudaStream_t>(current_stream(index));
  if (next == before) return;
  require_no_recording("another stream");
  const Use use(index);
  const Event event(cudaEventDisableTiming);
  event.record(before);
  event.hold(next);
  set_current_stream(index, next);
}

}  // namespace renga::cuda
