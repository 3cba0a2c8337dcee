// Packed GEMM micro-kernels. Matrices are packed into panels: strips of kPanel columns, each dense,
// so that a product reads memory in one direction. Sums are in float32, also of bfloat16 numbers,
// for which the machine must have simd::has_bfloat16_dot_product.
#pragma once

#include <cstdint>

#include "tensor/half.h"

namespace renga {

inline constexpr std::int64_t kPanel = 32;  // the columns of a panel
// Rows of the left operand and the result come in multiples of this.
inline constexpr std::int64_t kPanelRows = 8;

// bfloat16 numbers are multiplied in pairs. In a matrix that is summed over its rows, pairs of rows
// are interleaved: number c of row r is at ((r / 2) * kPanel + c) * 2 + r % 2. "Interleaved" is
// this order for bfloat16, and row-major order for float32.

// c += a b (c = a b unless `accumulate`), where a has `panels` panels (rows, kPanel), `a_step`
// numbers apart, b is (panels * kPanel, kPanel), interleaved, and c (rows, kPanel). `rows` is a
// multiple of kPanelRows.
void packed_gemm(const float* a, std::int64_t a_step, std::int64_t panels, const float* b, float* c,
                 std::int64_t rows, bool accumulate = false);
void packed_gemm(const bfloat16* a, std::int64_t a_step, std::int64_t panels, const bfloat16* b,
                 float* c, std::int64_t rows, bool accumulate = false);

// c += a^T b (c = a^T b unless `accumulate`), where a and b are (depth, kPanel), interleaved, and c
// is (kPanel, kPanel). For bfloat16 `depth` is even. The operands of the next product are
// prefetched.
void packed_gemm_transposed(const float* a, const float* b, std::int64_t depth, float* c,
                            bool accumulate, const float* next_a, const float* next_b);
void packed_gemm_transposed(const bfloat16* a, const bfloat16* b, std::int64_t depth, float* c,
                            bool accumulate, const bfloat16* next_a, const bfloat16* next_b);

// These multiply `count` right operands, `b_step` numbers apart, whose results are `c_step` apart:
// c += a b, or c = a b, as above.
void packed_gemms(const float* a, std::int64_t a_step, std::int64_t panels, const float* b,
                  std::int64_t b_step, std::int64_t count, float* c, std::int64_t c_step,
                  std::int64_t rows, bool accumulate);
void packed_gemms(const bfloat16* a, std::int64_t a_step, std::int64_t panels, const bfloat16* b,
                  std::int64_t b_step, std::int64_t count, float* c, std::int64_t c_step,
                  std::int64_t rows, bool accumulate);
// c += a^T b.
void packed_gemms_transposed(const float* a, const float* b, std::int64_t depth,
                             std::int64_t b_step, std::int64_t count, float* c,
                             std::int64_t c_step);
void packed_gemms_transposed(const bfloat16* a, const bfloat16* b, std::int64_t depth,
                             std::int64_t b_step, std::int64_t count, float* c,
                             std::int64_t c_step);

}  // namespace renga
