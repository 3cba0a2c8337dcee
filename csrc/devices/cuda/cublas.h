// cuBLAS: its errors and handles.
#pragma once

#include <cublas_v2.h>

#include <stdexcept>
#include <string>

#include "devices/cuda/handles.h"

namespace renga::cuda {

inline void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("cublas: ") + cublasGetStatusString(status) + " in " + call);
}

inline cublasHandle_t create_cublas() {
  cublasHandle_t handle = nullptr;
  RENGA_CUDA(cublasCreate(&handle));
  return handle;
}

// A handle that computes on the current stream, for a scope.
class Cublas {
 public:
  Cublas() { RENGA_CUDA(cublasSetStream(lease_.get(), stream())); }
  cublasHandle_t get() const { return lease_.get(); }

 private:
  Lease<cublasHandle_t, create_cublas> lease_;
};

}  // namespace renga::cuda
