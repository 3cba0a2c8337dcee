// Attention of 16-bit floats on tensor cores.
#pragma once

#include "ops/attention/attention.h"

namespace renga::attention {

// Whether forward_on_tensor_cores() and backward_on_tensor_cores() take these arrays: 16-bit floats
// in rows of at most 128 columns, eight of which one instruction copies.
bool suit_tensor_cores(std::initializer_list<const Array*> arrays);

void forward_on_tensor_cores(const Attention& a, const Array& y, const Array& log_sums);

// `means`: of each query, the sum of y gy.
void backward_on_tensor_cores(const Attention& a, const Array& log_sums, const Array& means,
                              const Array& gy, const Array& gq, const Array& gk, const Array& gv);

}  // namespace renga::attention
