// cuBLAS and cuDNN: their errors, and the handles that each thread keeps for each device.
#pragma once

#include <cublas_v2.h>
#include <cudnn.h>

#include "devices/cuda/cuda.h"

namespace renga::cuda {

void check(cublasStatus_t status, const char* call);
void check(cudnnStatus_t status, const char* call);

// For the thread's current device.
cublasHandle_t cublas();
cudnnHandle_t cudnn();

}  // namespace renga::cuda
