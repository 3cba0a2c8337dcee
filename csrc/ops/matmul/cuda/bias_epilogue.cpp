#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "devices/cuda/cublas_lt.h"
#include "ops/matmul/cuda/stack.h"

namespace renga {
namespace {

using Algorithm = std::optional<cublasLtMatmulAlgo_t>;  // nothing where there is none

// A handle with what its heuristics have selected, for one thread at a time.
struct Selector {
  static constexpr std::size_t kMost = 1024;  // shapes; a full table is emptied
  cublasLtHandle_t handle = nullptr;
  std::map<std::vector<std::int64_t>, Algorithm> selected;
};

Selector* create_selector() {
  auto selector = std::make_unique<Selector>();
  RENGA_CUDA(cublasLtCreate(&selector->handle));
  return selector.release();
}

constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;

// The largest power of two, up to 256, of which an address is a multiple: kernels may need it.
std::int64_t alignment_of(const Array& x) {
  std::uintptr_t alignment = 256;
  while (reinterpret_cast<std::uintptr_t>(x.data()) % alignment != 0) alignment /= 2;
  return static_cast<std::int64_t>(alignment);
}

// Matrices are column-major, the transposes of ours: c^T = b^T a^T + bias.
struct Problem {
  Stack left, right;  // b and a
  Array bias, result;
  std::int64_t m, n, k;
  cublasComputeType_t compute;

  cudaDataType_t type() const { return cublas_type(left.array.dtype()); }
  std::array<std::int64_t, 4> alignments() const {
    const std::int64_t of_result = alignment_of(result);
    return {alignment_of(left.array), alignment_of(right.array), of_result, of_result};
  }
  std::vector<std::int64_t> key() const {
    std::vector<std::int64_t> key{m,
                                  n,
                                  k,
                                  left.op,
                                  right.op,
                                  left.leading,
                                  right.leading,
                                  type(),
                                  cublas_type(result.dtype()),
                                  compute};
    for (std::int64_t alignment : alignments()) key.push_back(alignment);
    return key;
  }
};

struct Descriptors {
  explicit Descriptors(const Problem& p) : operation(cuda::matmul_descriptor(p.compute)) {
    const bool left_is_plain = p.left.op == CUBLAS_OP_N, right_is_plain = p.right.op == CUBLAS_OP_N;
    cuda::set(operation, CUBLASLT_MATMUL_DESC_TRANSA, p.left.op);
    cuda::set(operation, CUBLASLT_MATMUL_DESC_TRANSB, p.right.op);
    cuda::set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    const void* const bias = p.bias.data();
    cuda::set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    a = cuda::matrix_layout(p.type(), left_is_plain ? p.m : p.k, left_is_plain ? p.k : p.m,
                            p.left.leading);
    b = cuda::matrix_layout(p.type(), right_is_plain ? p.k : p.n, right_is_plain ? p.n : p.k,
                            p.right.leading);
    c = cuda::matrix_layout(cublas_type(p.result.dtype()), p.m, p.n, p.m);
  }
  cuda::MatmulDescriptor operation;
  cuda::MatrixLayout a, b, c;
};

Algorithm select(const Problem& p, const Descriptors& d, cublasLtHandle_t handle) {
  const cuda::MatmulPreference preference = cuda::matmul_preference();
  const auto bytes = static_cast<std::size_t>(kWorkspaceBytes);
  cuda::set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes);
  constexpr std::array names{
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (std::size_t i = 0; i < names.size(); ++i) {
    cuda::set(preference, names[i], static_cast<std::uint32_t>(p.alignments()[i]));
  }
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, d.operation.get(), d.a.get(), d.b.get(), d.c.get(),
                                     d.c.get(), preference.get(), 1, &found, &count);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) return std::nullopt;
  return found.algo;
}

}  // namespace

bool multiply_with_bias(const Array& a, const Array& b, const Array& bias, const Array& c,
                        cublasComputeType_t compute) {
  constexpr std::int64_t kBiasAlignment = 16;
  if (alignment_of(bias) < kBiasAlignment) return false;
  const Problem p{as_stack(b), as_stack(a), bias, c, c.shape(1), c.shape(0), a.shape(1), compute};
  const cuda::Lease<Selector*, create_selector> lease;
  Selector& selector = *lease.get();
  const Descriptors d(p);
  const auto key = p.key();
  auto known = selector.selected.find(key);
  if (known == selector.selected.end()) {
    if (selector.selected.size() == Selector::kMost) selector.selected.clear();
    known = selector.selected.emplace(key, select(p, d, selector.handle)).first;
  }
  if (!known->second) return false;
  const Array workspace = empty({kWorkspaceBytes}, Dtype::uint8, c.device());
  const float one = 1, zero = 0;
  RENGA_CUDA(cublasLtMatmul(selector.handle, d.operation.get(), &one, p.left.array.data(),
                            d.a.get(), p.right.array.data(), d.b.get(), &zero, c.data(), d.c.get(),
                            c.data(), d.c.get(), &*known->second, workspace.data(),
                            static_cast<std::size_t>(kWorkspaceBytes), cuda::stream()));
  return true;
}

}  // namespace renga
