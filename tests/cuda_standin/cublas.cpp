// cuBLAS as loops, over the calls that renga makes. Matrices are column-major.
#include <cstring>

#include "cublas_v2.h"
#include "numbers.h"
#include "standin.h"

using namespace cuda_standin;

struct CublasStandin {
  int device;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
};

namespace {

struct Matrices {
  const void* data;
  Kind kind;
  bool transposed;
  std::int64_t leading, stride;
  double at(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    const std::int64_t i = transposed ? row * leading + column : column * leading + row;
    return read(data, kind, batch * stride + i);
  }
  // Whether all of them are in one block of a device.
  bool are_inside(int device, std::int64_t rows, std::int64_t columns, std::int64_t batches) const {
    const std::int64_t across = transposed ? columns : rows, along = transposed ? rows : columns;
    if (leading < std::max<std::int64_t>(1, across)) return false;
    const std::int64_t last = (batches - 1) * stride + (along - 1) * leading + across;
    return device_at(data) == device &&
           is_allocated(device, data, static_cast<std::size_t>(last * size_of(kind)));
  }
};

// Returns whether cuBLAS multiplies these types.
bool is_supported(cublasComputeType_t compute, cudaDataType_t a, cudaDataType_t b,
                  cudaDataType_t c) {
  if (a != b) return false;
  if (compute == CUBLAS_COMPUTE_64F) return a == CUDA_R_64F && c == CUDA_R_64F;
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return a == CUDA_R_32F && c == CUDA_R_32F;
  return a != CUDA_R_64F && (c == a || c == CUDA_R_32F);
}

}  // namespace

extern "C" {
const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS         ? "CUBLAS_STATUS_SUCCESS"
         : status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == CUBLAS_STATUS_ALLOC_FAILED  ? "CUBLAS_STATUS_ALLOC_FAILED"
         : status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                 : "CUBLAS_STATUS_EXECUTION_FAILED";
}

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  if (begin_call()) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = new CublasStandin{current_device()};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  handle->workspace = nullptr;  // the library's own again
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0;
  if (!is_aligned || !is_allocated(handle->device, workspace, bytes)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  handle->workspace = workspace;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, std::int64_t m,
    std::int64_t n, std::int64_t k, const void* alpha, const void* A, cudaDataType_t a_type,
    std::int64_t lda, long long stride_a, const void* B, cudaDataType_t b_type, std::int64_t ldb,
    long long stride_b, const void* beta, void* C, cudaDataType_t c_type, std::int64_t ldc,
    long long stride_c, std::int64_t batch_count, cublasComputeType_t compute_type,
    cublasGemmAlgo_t) {
  if (begin_call()) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!is_supported(compute_type, a_type, b_type, c_type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const int device = handle->device;
  const Matrices a{A, kind_of(a_type), transa == CUBLAS_OP_T, lda, stride_a};
  const Matrices b{B, kind_of(b_type), transb == CUBLAS_OP_T, ldb, stride_b};
  const Matrices c{C, kind_of(c_type), false, ldc, stride_c};
  const bool is_valid = device == device_of(handle->stream) && m > 0 && n > 0 && k > 0 &&
                        a.are_inside(device, m, k, batch_count) &&
                        b.are_inside(device, k, n, batch_count) &&
                        c.are_inside(device, m, n, batch_count);
  if (!is_valid) return CUBLAS_STATUS_INVALID_VALUE;
  const bool is_double = compute_type == CUBLAS_COMPUTE_64F;
  const auto scalar = [is_double](const void* x) {
    return is_double ? *static_cast<const double*>(x) : double{*static_cast<const float*>(x)};
  };
  const double scale = scalar(alpha), keep = scalar(beta);
  // The library's own workspace would be allocated by each recorded graph.
  if (handle->workspace == nullptr) fault("cublas: a product without a workspace");
  const auto multiply = [=, workspace = handle->workspace] {
    const Access memory(device);
    std::memset(workspace, 0xff, 4096);  // others must not use it meanwhile
    for (std::int64_t i = 0; i < batch_count; ++i) {
      for (std::int64_t column = 0; column < n; ++column) {
        for (std::int64_t row = 0; row < m; ++row) {
          double sum = 0;
          for (std::int64_t l = 0; l < k; ++l) sum += a.at(i, row, l) * b.at(i, l, column);
          sum *= scale;
          if (keep != 0) sum += keep * c.at(i, row, column);
          write(C, c.kind, i * stride_c + column * ldc + row, sum);
        }
      }
    }
  };
  return enqueue(handle->stream, {multiply, {}}) ? CUBLAS_STATUS_INVALID_VALUE
                                                 : CUBLAS_STATUS_SUCCESS;
}
}
