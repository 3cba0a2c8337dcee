// The arithmetic of reductions, apart from how the operands came together.
//
// Operands are taken pairwise in rank order: the ranks that a power of two leaves over are first
// joined to their neighbours, (0 1) (2 3) …, then neighbours are joined again and again. Every way
// of bringing operands together can keep this order, so all of them give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tensor/dtype.h"

namespace renga {

enum class Reduction : std::uint8_t { sum, mean, max, min, prod };

// "sum", "mean", "max", "min" or "prod"; throws std::invalid_argument for another word.
Reduction reduction_from_string(const std::string& name);
const char* name_of(Reduction reduction);

using Operands = std::span<const std::byte* const>;
using Results = std::span<std::byte* const>;

// The reduction of `xs`, element by element, into each of `ys`, which may be among `xs`. 16-bit
// floats are computed in float32 and rounded once.
void reduce(Reduction reduction, Dtype dtype, Operands xs, Results ys, std::int64_t n);
inline void reduce(Reduction reduction, Dtype dtype, Operands xs, std::byte* y, std::int64_t n) {
  reduce(reduction, dtype, xs, Results(&y, 1), n);
}

// The same in steps, for operands that do not meet in one place. Partial results are of
// `partial_dtype`; that of a mean is a sum.
Dtype partial_dtype(Dtype dtype);
void begin_partial(Reduction reduction, Dtype dtype, Operands xs, std::byte* partial,
                   std::int64_t n);
// y = left op right, all partial; y may be either of them.
void join_partial(Reduction reduction, Dtype dtype, const std::byte* left, const std::byte* right,
                  std::byte* y, std::int64_t n);
// y may be `partial` where the two dtypes are one.
void end_partial(Reduction reduction, Dtype dtype, int operands, const std::byte* partial,
                 std::byte* y, std::int64_t n);

}  // namespace renga
