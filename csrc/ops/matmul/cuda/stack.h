// Operands of products as cuBLAS takes them.
#pragma once

#include "devices/cuda/cublas.h"
#include "ops/matmul/batch.h"
#include "tensor/copy.h"
#include "tensor/views.h"

namespace renga {

// A stack of matrices: rows or columns contiguous, one batch axis in front.
struct Stack {
  Array array;
  cublasOperation_t op;  // CUBLAS_OP_N where the rows are contiguous
  std::int64_t leading;
  std::int64_t step;  // elements between two matrices
};

inline Stack as_stack(const Array& matrices) {
  const Array flat = flatten_batch(matrices);
  const Array x = flat.ndim() == 2 ? expand_view(flat, 0) : flat;
  const std::int64_t item = x.itemsize(), rows = x.shape(1), columns = x.shape(2);
  const std::int64_t batch = x.strides()[0], down = x.strides()[1], across = x.strides()[2];
  if (across == item && down >= columns * item && batch >= 0) {
    return {x, CUBLAS_OP_N, down / item, batch / item};
  }
  if (down == item && across >= rows * item && batch >= 0) {
    return {x, CUBLAS_OP_T, across / item, batch / item};
  }
  return {contiguous(x), CUBLAS_OP_N, columns, rows * columns};
}

inline cudaDataType_t cublas_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16:
      return CUDA_R_16F;
    case Dtype::bfloat16:
      return CUDA_R_16BF;
    case Dtype::float32:
      return CUDA_R_32F;
    default:
      return CUDA_R_64F;
  }
}

// c = a b + bias for each row of c (m, n), by one kernel of cuBLASLt. a and b are of one dtype,
// bias is of that of c. False where it has none.
bool multiply_with_bias(const Array& a, const Array& b, const Array& bias, const Array& c,
                        cublasComputeType_t compute);

}  // namespace renga
