// Matrix products on panels: matrices cut into strips of kPanel columns, each strip dense, so that
// a product walks through memory in one direction. Winograd convolution is made of these. Sums are
// float32's, also of bfloat16 numbers, for which the machine must have
// simd::has_bfloat16_dot_product.
#pragma once

#include <cstdint>

#include "tensor/half.h"

namespace renga {

inline constexpr std::int64_t kPanel = 32;     // columns of a panel
inline constexpr std::int64_t kPanelRows = 8;  // a panel's rows come in groups of so many

// bfloat16 numbers are multiplied two by two. Matrices that are summed over along their rows have
// these in pairs: number c of row r is at ((r / 2) * kPanel + c) * 2 + r % 2. "Stacked" stands for
// this order, for float32 for the usual one.

// c = a b, where a has `panels` panels (rows, kPanel), `a_step` numbers apart, b is
// (panels * kPanel, kPanel), stacked, and c (rows, kPanel). `rows` is a multiple of kPanelRows.
void multiply_panels(const float* a, std::int64_t a_step, std::int64_t panels, const float* b,
                     float* c, std::int64_t rows);
void multiply_panels(const bfloat16* a, std::int64_t a_step, std::int64_t panels, const bfloat16* b,
                     float* c, std::int64_t rows);

// c += a^T b (c = a^T b unless `accumulate`), where a and b are (depth, kPanel), stacked, and c is
// (kPanel, kPanel). Of bfloat16 numbers `depth` is even. The next product's a
// and b are fetched meanwhile.
void multiply_transposed_panel(const float* a, const float* b, std::int64_t depth, float* c,
                               bool accumulate, const float* next_a, const float* next_b);
void multiply_transposed_panel(const bfloat16* a, const bfloat16* b, std::int64_t depth, float* c,
                               bool accumulate, const bfloat16* next_a, const bfloat16* next_b);

}  // namespace renga
