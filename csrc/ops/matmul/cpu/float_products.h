// Products of float32 numbers, and of 16-bit ones that are converted to them. Shapes are those of
// MatmulKernels; no matrix is empty. The bits do not depend on the number of threads.
#pragma once

#include "ops/matmul/epilogue.h"
#include "ops/matmul/packed_weight_cache.h"

namespace renga {

// c = a b + epilogue in float32, by the kernel that selection.cpp names. Renga's own kernels add a
// bias. With a `cache`, packed weights may be kept there.
void multiply_floats(const Array& a, const Array& b, const Array& c, const Epilogue& epilogue,
                     PackedWeightCache* cache);

// c = a b + epilogue, whose operands, bias and c have 16-bit or float32 numbers. Rows that meet few
// weights, and stacks, are multiplied in parts whose converted numbers stay in the second-level
// cache.
void multiply_in_float32(const Array& a, const Array& b, const Array& c, const Epilogue& epilogue);

}  // namespace renga
