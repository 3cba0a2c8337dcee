// Attention by blocks that have their operands' whole rows in shared memory.
#pragma once

#include <initializer_list>

#include "ops/attention/attention.h"

namespace renga::attention {

// Whether the functions below take these arrays. 16-bit floats are multiplied on tensor cores: they
// have at most 128 columns, a multiple of eight, and begin where one instruction copies eight.
// float32 has at most 64 columns.
bool suit_row_blocks(std::initializer_list<const Array*> arrays);

void forward_by_row_blocks(const Attention& a, const Array& y, const Array& log_sums);

// `means`: of each query, the sum of y gy.
void backward_by_row_blocks(const Attention& a, const Array& log_sums, const Array& means,
                            const Array& gy, const Array& gq, const Array& gk, const Array& gv);

}  // namespace renga::attention
