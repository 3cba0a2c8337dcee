#include "devices/cuda/libraries.h"
#include "ops/matmul/batch.h"
#include "ops/matmul/matmul.h"
#include "tensor/views.h"

namespace renga {
namespace {

// A stack of matrices as cuBLAS requires it: rows or columns contiguous, one batch axis in front.
struct Stack {
  Array array;
  cublasOperation_t op;  // CUBLAS_OP_N where the rows are contiguous
  std::int64_t leading;
  std::int64_t step;  // elements between two matrices
};

Stack as_stack(const Array& matrices) {
  const Array flat = flatten_batch(matrices);
  const Array x = flat.ndim() == 2 ? expand_view(flat, 0) : flat;
  const std::int64_t item = x.itemsize(), rows = x.shape(1), columns = x.shape(2);
  const auto [batch, down, across] = std::array{x.strides()[0], x.strides()[1], x.strides()[2]};
  if (across == item && down >= columns * item && batch >= 0) {
    return {x, CUBLAS_OP_N, down / item, batch / item};
  }
  if (down == item && across >= rows * item && batch >= 0) {
    return {x, CUBLAS_OP_T, across / item, batch / item};
  }
  return {contiguous(x), CUBLAS_OP_N, columns, rows * columns};
}

cudaDataType_t type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16:
      return CUDA_R_16F;
    case Dtype::bfloat16:
      return CUDA_R_16BF;
    case Dtype::float32:
      return CUDA_R_32F;
    case Dtype::float64:
      return CUDA_R_64F;
    default:
      fail<std::runtime_error>("matmul: expected a float dtype on CUDA, got ", dtype);
  }
}

// cuBLAS is column-major: c = a b becomes c^T = b^T a^T.
template <class Scalar>
void multiply(const Stack& a, const Stack& b, const Array& c, bool accumulate,
              cublasComputeType_t compute) {
  const std::int64_t m = c.shape(c.ndim() - 2), n = c.shape(c.ndim() - 1), k = a.array.shape(2);
  const cudaDataType_t type = type_of(c.dtype());
  const Scalar alpha = 1, beta = accumulate ? 1 : 0;
  RENGA_CUDA(cublasGemmStridedBatchedEx_64(cuda::cublas(), b.op, a.op, n, m, k, &alpha,
                                           b.array.data(), type, b.leading, b.step, a.array.data(),
                                           type, a.leading, a.step, &beta, c.data(), type, n, m * n,
                                           a.array.shape(0), compute, CUBLAS_GEMM_DEFAULT));
}

void matmul_cuda(const Array& a, const Array& b, const Array& c, bool accumulate) {
  if (c.size() == 0) return;
  if (a.size() == 0) return accumulate ? void() : fill(c, 0);
  const cuda::Use use(c.device());
  const Stack left = as_stack(cast(a, c.dtype())), right = as_stack(cast(b, c.dtype()));
  if (c.dtype() == Dtype::float64) {
    return multiply<double>(left, right, c, accumulate, CUBLAS_COMPUTE_64F);
  }
  multiply<float>(left, right, c, accumulate, CUBLAS_COMPUTE_32F);
}

[[maybe_unused]] const bool registered = matmul_kernels.add(cuda::number(), {matmul_cuda});

}  // namespace
}  // namespace renga
