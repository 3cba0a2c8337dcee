// cuBLASLt: its descriptors.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <type_traits>

#include "devices/cuda/cublas.h"

namespace renga::cuda {

template <class Handle, cublasStatus_t (*destroy)(Handle)>
struct DestroyDescriptor {
  void operator()(Handle handle) const { destroy(handle); }
};
template <class Handle, cublasStatus_t (*destroy)(Handle)>
using LtDescriptor =
    std::unique_ptr<std::remove_pointer_t<Handle>, DestroyDescriptor<Handle, destroy>>;

using MatmulDescriptor = LtDescriptor<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using MatrixLayout = LtDescriptor<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using MatmulPreference = LtDescriptor<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

inline MatmulDescriptor matmul_descriptor(cublasComputeType_t compute) {
  cublasLtMatmulDesc_t made = nullptr;
  RENGA_CUDA(cublasLtMatmulDescCreate(&made, compute, CUDA_R_32F));
  return MatmulDescriptor(made);
}

inline MatrixLayout matrix_layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns,
                                  std::int64_t leading) {
  cublasLtMatrixLayout_t made = nullptr;
  RENGA_CUDA(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), leading));
  return MatrixLayout(made);
}

inline MatmulPreference matmul_preference() {
  cublasLtMatmulPreference_t made = nullptr;
  RENGA_CUDA(cublasLtMatmulPreferenceCreate(&made));
  return MatmulPreference(made);
}

template <class T>
void set(const MatmulDescriptor& descriptor, cublasLtMatmulDescAttributes_t name, const T& value) {
  RENGA_CUDA(cublasLtMatmulDescSetAttribute(descriptor.get(), name, &value, sizeof value));
}

template <class T>
void set(const MatmulPreference& preference, cublasLtMatmulPreferenceAttributes_t name,
         const T& value) {
  RENGA_CUDA(cublasLtMatmulPreferenceSetAttribute(preference.get(), name, &value, sizeof value));
}

}  // namespace renga::cuda
