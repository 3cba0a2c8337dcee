// Products a bᵀ where `a` has few rows.
// Most of their time goes into reading b, which is read once, where it is, without packing.
#pragma once

#include "ops/matmul/cpu/operands.h"

namespace renga {

// c = a bᵀ + addend, on all threads: c (rows, n) is contiguous.
void multiply_few_rows(const LeftRows& a, const WeightRows& b, float* c, const Addend& addend);

}  // namespace renga
