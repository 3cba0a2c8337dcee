// cuBLAS: its errors and handles.
#pragma once

#include <cublas_v2.h>

#include <stdexcept>
#include <string>

#include "devices/allocator.h"
#include "devices/cuda/handles.h"

namespace renga::cuda {

inline void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("cublas: ") + cublasGetStatusString(status) + " in " + call);
}

// Sums of 16-bit numbers are those of float32 also where a product's parts are added.
inline cublasHandle_t create_cublas() {
  cublasHandle_t handle = nullptr;
  RENGA_CUDA(cublasCreate(&handle));
  RENGA_CUDA(cublasSetMathMode(handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
  return handle;
}

// A handle that computes on the current stream, for a scope. Its workspace is a block of the
// allocator, whose reuse follows the stream: that of cuBLAS itself differs from stream to stream,
// and with it the order of sums, and is allocated anew by each recorded graph.
class Cublas {
 public:
  explicit Cublas(Device device) : workspace_(device) {
    RENGA_CUDA(cublasSetStream(lease_.get(), stream()));  // resets the workspace
    RENGA_CUDA(cublasSetWorkspace(lease_.get(), workspace_.block, kWorkspaceBytes));
  }
  cublasHandle_t get() const { return lease_.get(); }

 private:
  static constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // as on Hopper

  struct Workspace {
    explicit Workspace(Device where) : device(where), block(allocate(kWorkspaceBytes, where)) {}
    ~Workspace() { deallocate(block, kWorkspaceBytes, device); }
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;
    Device device;
    void* block;
  };

  Lease<cublasHandle_t, create_cublas> lease_;
  Workspace workspace_;
};

}  // namespace renga::cuda
