#include "devices/cuda/libraries.h"

#include <map>
#include <memory>
#include <stdexcept>

namespace renga::cuda {
namespace {

// Handles are expensive to create and belong to one device.
template <class Handle, auto create, auto destroy>
Handle kept() {
  struct Owner {
    Handle handle = nullptr;
    ~Owner() { destroy(handle); }
  };
  thread_local std::map<int, std::unique_ptr<Owner>> owners;
  int index = 0;
  RENGA_CUDA(cudaGetDevice(&index));
  auto& owner = owners[index];
  if (!owner) {
    auto fresh = std::make_unique<Owner>();
    RENGA_CUDA(create(&fresh->handle));
    owner = std::move(fresh);
  }
  return owner->handle;
}

}  // namespace

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("cublas: ") + cublasGetStatusString(status) + " in " + call);
}

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("cudnn: ") + cudnnGetErrorString(status) + " in " + call);
}

cublasHandle_t cublas() { return kept<cublasHandle_t, cublasCreate, cublasDestroy>(); }
cudnnHandle_t cudnn() { return kept<cudnnHandle_t, cudnnCreate, cudnnDestroy>(); }

}  // namespace renga::cuda
