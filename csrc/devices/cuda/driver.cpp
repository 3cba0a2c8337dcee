#include "devices/allocator.h"
#include "devices/cuda/cuda.h"

namespace renga::cuda {
namespace {

class CudaDriver final : public Driver {
 public:
  std::string name() const override { return "cuda"; }
  int count() const override { return cuda::count(); }

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
  void release(void* block, std::size_t, int index) override {
    const Use use(index);
    cudaFree(block);
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
    const Use use(index);
    RENGA_CUDA(cudaDeviceSynchronize());
  }

 private:
  static void move(void* to, const void* from, std::size_t bytes, int index, cudaMemcpyKind kind) {
    const Use use(index);
    RENGA_CUDA(cudaMemcpy(to, from, bytes, kind));
  }
};

}  // namespace

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  const std::string text = std::string("cuda: ") + cudaGetErrorString(status) + " in " + call;
  if (status == cudaErrorMemoryAllocation) throw OutOfMemory(text);
  throw std::runtime_error(text);
}

std::uint8_t number() {
  // Never destroyed: storages may be released after the end of main().
  static const std::uint8_t registered = register_driver(new CudaDriver);
  return registered;
}

int count() {
  int devices = 0, driver = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaSuccess && devices > 0) return devices;
  cudaDriverGetVersion(&driver);
  const char* reason = driver == 0             ? "no driver"
                       : status == cudaSuccess ? "no device"
                                               : cudaGetErrorString(status);
  throw std::runtime_error(std::string("expected a CUDA device and its driver, got ") + reason);
}

// Unchecked, as memory is also released where nothing may be thrown: what is wrong with the device
// shows in the calls that follow.
Use::Use(int index) {
  cudaGetDevice(&before_);
  if (before_ != index) cudaSetDevice(index);
}

Use::~Use() { cudaSetDevice(before_); }

}  // namespace renga::cuda
