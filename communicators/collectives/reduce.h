// The arithmetic of reductions, independent of how operands are communicated.
//
// Operands are combined pairwise in rank order, along a binary tree. If the number of ranks is not
// a power of two, the first ones are combined in pairs, (0 1) (2 3) …, until a power of two is
// left. All algorithms but the ring keep this order, so they give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tensor/dtype.h"

namespace renga {

enum class ReduceOp : std::uint8_t { sum, mean, max, min, prod };

// "sum", "mean", "max", "min" or "prod"; throws std::invalid_argument for another word.
ReduceOp reduction_from_string(std::string_view name);
const char* name_of(ReduceOp reduction);

using Operands = std::span<const std::byte* const>;
using Results = std::span<std::byte* const>;

// The reduction of `xs`, element by element, into each of `ys`, which may be among `xs`. 16-bit
// floats are computed in float32 and rounded once.
void reduce(ReduceOp reduction, Dtype dtype, Operands xs, Results ys, std::int64_t n);
inline void reduce(ReduceOp reduction, Dtype dtype, Operands xs, std::byte* y, std::int64_t n) {
  reduce(reduction, dtype, xs, Results(&y, 1), n);
}

// How many of a tree's first operands are combined before the others join. Either half is a tree of
// its own.
int left_operands(int operands);

// These functions reduce in steps, for algorithms that reduce while they communicate. Partial
// results have `partial_dtype`; the partial result of a mean is a sum.
Dtype partial_dtype(Dtype dtype);
void reduce_to_partial(ReduceOp reduction, Dtype dtype, Operands xs, std::byte* partial,
                       std::int64_t n);
// y = left op right, all partial; y may be either of them.
void combine_partial(ReduceOp reduction, Dtype dtype, const std::byte* left, const std::byte* right,
                     std::byte* y, std::int64_t n);
// y may be `partial` if the two dtypes are the same.
void finish_partial(ReduceOp reduction, Dtype dtype, int operands, const std::byte* partial,
                    std::byte* y, std::int64_t n);

}  // namespace renga
