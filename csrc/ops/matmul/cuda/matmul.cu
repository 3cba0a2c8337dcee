// Products by cuBLAS; those of integers by a kernel.
#include "ops/elementwise/integer_maps.h"
#include "ops/matmul/cuda/stack.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/precision.h"
#include "tensor/elements.cu.h"
#include "tensor/views.h"

namespace renga {
namespace {

// a and b are of one dtype. cuBLAS is column-major: c = a b becomes c^T = b^T a^T.
template <class Scalar>
void multiply(const Array& a, const Array& b, const Array& c, bool accumulate,
              cublasComputeType_t compute) {
  const Stack left = as_stack(a), right = as_stack(b);
  const std::int64_t m = c.shape(c.ndim() - 2), n = c.shape(c.ndim() - 1), k = left.array.shape(2);
  const cudaDataType_t type = cublas_type(a.dtype());
  const cuda::Cublas cublas(c.device());
  const Scalar alpha = 1, beta = accumulate ? 1 : 0;
  RENGA_CUDA(cublasGemmStridedBatchedEx_64(
      cublas.get(), right.op, left.op, n, m, k, &alpha, right.array.data(), type, right.leading,
      right.step, left.array.data(), type, left.leading, left.step, &beta, c.data(),
      cublas_type(c.dtype()), n, m * n, left.array.shape(0), compute, CUBLAS_GEMM_DEFAULT));
}

// x as the sum of two bfloat16 arrays, exact to 2^-16.
struct Bfloat16Split {
  explicit Bfloat16Split(const Array& x) : high(cast(x, Dtype::bfloat16)) {
    const Array rest = empty_like(x);
    cuda::for_each_element<3>({&rest, &x, &high}, Difference{});
    low = cast(rest, Dtype::bfloat16);
  }
  struct Difference {
    __device__ void operator()(std::byte* const* p) const {
      cuda::store<float>(p[0], cuda::load<float>(p[1]) - cuda::load<bfloat16>(p[2]));
    }
  };
  Array high, low;
};

void multiply_bf16x3(const Array& a, const Array& b, const Array& c, bool accumulate) {
  const Bfloat16Split left(a), right(b);
  multiply<float>(left.low, right.high, c, accumulate, CUBLAS_COMPUTE_32F);
  multiply<float>(left.high, right.low, c, true, CUBLAS_COMPUTE_32F);
  multiply<float>(left.high, right.high, c, true, CUBLAS_COMPUTE_32F);
}

void multiply_floats(const Array& a, const Array& b, const Array& c, bool accumulate) {
  const bool all_float32 =
      a.dtype() == Dtype::float32 && b.dtype() == Dtype::float32 && c.dtype() == Dtype::float32;
  if (!all_float32) {
    // Where one operand is bfloat16, so are the products.
    const Dtype dtype = c.dtype() == Dtype::float16 ? Dtype::float16 : Dtype::bfloat16;
    return multiply<float>(cast(a, dtype), cast(b, dtype), c, accumulate, CUBLAS_COMPUTE_32F);
  }
  switch (compute_precision()) {
    case Precision::highest:
      return multiply<float>(a, b, c, accumulate, CUBLAS_COMPUTE_32F);
    case Precision::high:
      return multiply_bf16x3(a, b, c, accumulate);
    case Precision::medium:
      return multiply<float>(a, b, c, accumulate, CUBLAS_COMPUTE_32F_FAST_TF32);
  }
}

// c[i, j] of each pair of matrices, in a type that may wrap around. Strides are in elements.
template <class T>
struct IntegerProduct {
  std::int64_t n, a_step, b_step;
  bool accumulate;
  __device__ void operator()(std::byte* const* p) const {
    using W = integers::Wrapping<T>;
    const auto *a = reinterpret_cast<const T*>(p[1]), *b = reinterpret_cast<const T*>(p[2]);
    T& c = *reinterpret_cast<T*>(p[0]);
    W sum = accumulate ? static_cast<W>(c) : W(0);
    for (std::int64_t l = 0; l < n; ++l) {
      sum = static_cast<W>(sum + static_cast<W>(a[l * a_step]) * static_cast<W>(b[l * b_step]));
    }
    c = static_cast<T>(sum);
  }
};

void multiply_integers(const Array& a, const Array& b, const Array& c, bool accumulate) {
  const int rows = c.ndim() - 2, columns = c.ndim() - 1;
  const std::int64_t item = c.itemsize();
  // Row i of a for all columns of c, and column j of b for all rows.
  const auto of_results = [&](const Array& x, int stretched) {
    Strides strides = x.strides();
    strides[stretched] = 0;
    return Array(x.storage(), x.data(), c.shape(), strides, x.dtype());
  };
  const Array left = of_results(a, columns), right = of_results(b, rows);
  visit_dtype(c.dtype(), [&]<class T>(Type<T>) {
    if constexpr (!is_floating<T>) {
      cuda::for_each_element<3>({&c, &left, &right},
                                IntegerProduct<T>{a.shape(columns), a.strides()[columns] / item,
                                                  b.strides()[rows] / item, accumulate});
    }
  });
}

void multiply_any(const Array& a, const Array& b, const Array& c, bool accumulate) {
  if (c.size() == 0) return;
  if (a.size() == 0) return accumulate ? void() : fill(c, 0);
  const cuda::Use use(c.device());
  if (!is_float(c.dtype())) return multiply_integers(a, b, c, accumulate);
  if (c.dtype() == Dtype::float64) {
    return multiply<double>(a, b, c, accumulate, CUBLAS_COMPUTE_64F);
  }
  multiply_floats(a, b, c, accumulate);
}

// Precision `high` is bf16x3.
void matmul_cuda(const Array& a, const Array& b, const Array& c, const Epilogue& epilogue,
                 PackedWeightCache*) {
  if (!epilogue.bias.defined()) return multiply_any(a, b, c, epilogue.accumulates);
  const bool all_float32 = a.dtype() == Dtype::float32 && b.dtype() == Dtype::float32;
  const Precision precision = all_float32 ? compute_precision() : Precision::highest;
  if (c.size() > 0 && a.size() > 0 && c.dtype() != Dtype::float64 && precision != Precision::high) {
    const cuda::Use use(c.device());
    const Dtype dtype = all_float32                   ? Dtype::float32
                        : c.dtype() == Dtype::float16 ? Dtype::float16
                                                      : Dtype::bfloat16;
    const bool is_rounded = precision == Precision::medium;
    const Array bias = contiguous(cast(epilogue.bias, c.dtype()));
    if (multiply_with_bias(cast(a, dtype), cast(b, dtype), bias, c,
                           is_rounded ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F)) {
      return;
    }
  }
  copy(broadcast_view("linear", epilogue.bias, c.shape()), c);
  multiply_any(a, b, c, true);
}

[[maybe_unused]] const bool registered =
    matmul_kernels.add(cuda::number(), {matmul_cuda, NoKernel{}, NoKernel{}, NoKernel{}});

}  // namespace
}  // namespace renga
