// cuBLASLt: one product with a bias, by the loops of cuBLAS.
#include <cstring>
#include <map>
#include <vector>

#include "cublasLt.h"
#include "numbers.h"
#include "standin.h"

using namespace cuda_standin;

struct CublasLtStandin {
  int device;
};
struct CublasLtOperation {
  cublasComputeType_t compute;
  std::map<int, std::vector<char>> attributes;

  template <class T>
  T get(int name) const {
    const auto found = attributes.find(name);
    T value{};
    if (found == attributes.end() || found->second.size() != sizeof(T)) {
      fault("cublasLt: an attribute that is missing or of another size");
    }
    std::memcpy(&value, found->second.data(), sizeof(T));
    return value;
  }
};
struct CublasLtLayout {
  cudaDataType_t type;
  std::int64_t rows, columns, leading;

  std::int64_t size() const { return (columns - 1) * leading + rows; }
};
struct CublasLtPreference {
  std::map<int, std::int64_t> values;
};

namespace {

// Kernels for addresses that are multiples of this many bytes, which they remember, and for any.
constexpr std::int64_t kVector = 16;

double element(const void* data, const CublasLtLayout& layout, bool transposed, std::int64_t row,
               std::int64_t column) {
  const std::int64_t i = transposed ? row * layout.leading + column : column * layout.leading + row;
  return read(data, kind_of(layout.type), i);
}

bool is_inside(int device, const void* data, const CublasLtLayout& layout) {
  const auto bytes = static_cast<std::size_t>(layout.size() * size_of(kind_of(layout.type)));
  return device_at(data) == device && is_allocated(device, data, bytes);
}

bool is_supported(const CublasLtOperation& operation, const CublasLtLayout& a,
                  const CublasLtLayout& b, const CublasLtLayout& c) {
  const bool tf32 = operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (a.type != b.type || a.type == CUDA_R_64F || (tf32 && a.type != CUDA_R_32F)) return false;
  return c.type == a.type || c.type == CUDA_R_32F;
}

}  // namespace

extern "C" {
std::size_t cublasLtGetVersion() { return 130100; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (begin_call()) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = new CublasLtStandin{current_device()};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation,
                                        cublasComputeType_t compute, cudaDataType_t scale_type) {
  if (scale_type != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *operation = new CublasLtOperation{compute, {}};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value, std::size_t bytes) {
  const auto* first = static_cast<const char*>(value);
  operation->attributes[name].assign(first, first + bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete operation;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  const auto r = static_cast<std::int64_t>(rows), c = static_cast<std::int64_t>(columns);
  if (r < 1 || c < 1 || leading < r) return CUBLAS_STATUS_INVALID_VALUE;
  *layout = new CublasLtLayout{type, r, c, leading};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new CublasLtPreference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, std::size_t bytes) {
  const bool is_size = name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
  if (bytes != (is_size ? 8 : 4)) return CUBLAS_STATUS_INVALID_VALUE;
  std::int64_t number = 0;
  std::memcpy(&number, value, bytes);
  preference->values[name] = number;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  if (begin_call()) return CUBLAS_STATUS_EXECUTION_FAILED;
  *count = 0;
  if (requested < 1 || !is_supported(*operation, *a, *b, *c)) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {};
  // By default all arrays are taken to be aligned.
  std::int64_t alignment = 256;
  for (int name = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
       name <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES; ++name) {
    const auto found = preference->values.find(name);
    if (found != preference->values.end()) alignment = std::min(alignment, found->second);
  }
  results[0].algo.data[0] = static_cast<std::uint64_t>(alignment >= kVector ? kVector : 1);
  results[0].workspaceSize = 4096;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* A, cublasLtMatrixLayout_t a,
                              const void* B, cublasLtMatrixLayout_t b, const void* beta,
                              const void*, cublasLtMatrixLayout_t, void* D,
                              cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t* algorithm,
                              void* workspace, std::size_t bytes, cudaStream_t stream) {
  if (begin_call()) return CUBLAS_STATUS_EXECUTION_FAILED;
  const int device = handle->device;
  const bool a_t = operation->get<cublasOperation_t>(CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T;
  const bool b_t = operation->get<cublasOperation_t>(CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T;
  const void* const bias = operation->get<const void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  const bool adds =
      operation->get<cublasLtEpilogue_t>(CUBLASLT_MATMUL_DESC_EPILOGUE) == CUBLASLT_EPILOGUE_BIAS;
  const std::int64_t k = a_t ? a->rows : a->columns;
  const CublasLtLayout of_bias{d->type, d->rows, 1, d->rows};
  const bool fits = (a_t ? a->columns : a->rows) == d->rows && (b_t ? b->columns : b->rows) == k &&
                    (b_t ? b->rows : b->columns) == d->columns;
  const bool is_valid =
      device == device_of(stream) && fits && adds && is_inside(device, A, *a) &&
      is_inside(device, B, *b) && is_inside(device, D, *d) && is_inside(device, bias, of_bias) &&
      bytes >= 4096 && is_allocated(device, workspace, bytes) &&
      *static_cast<const float*>(alpha) == 1 && *static_cast<const float*>(beta) == 0;
  if (!is_valid) return CUBLAS_STATUS_INVALID_VALUE;
  for (const void* address : {A, B, static_cast<const void*>(D)}) {
    if (reinterpret_cast<std::uintptr_t>(address) % algorithm->data[0] != 0) {
      fault("cublasLt: an array that is less aligned than the heuristics were told");
    }
  }
  const auto multiply = [=, a = *a, b = *b, d = *d] {
    const Access memory(device);
    std::memset(workspace, 0xff, 4096);
    for (std::int64_t column = 0; column < d.columns; ++column) {
      for (std::int64_t row = 0; row < d.rows; ++row) {
        double sum = read(bias, kind_of(d.type), row);
        for (std::int64_t l = 0; l < k; ++l) {
          sum += element(A, a, a_t, row, l) * element(B, b, b_t, l, column);
        }
        write(D, kind_of(d.type), column * d.leading + row, sum);
      }
    }
  };
  return enqueue(stream, {multiply, {}}) ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}
}
