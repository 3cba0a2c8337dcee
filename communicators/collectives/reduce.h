// The arithmetic of reductions, apart from how the operands came together.
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

// y = xs[0] op xs[1] op … element by element in exactly this order, so that every rank that does it
// gets the same bits. 16-bit floats are computed in float32 and rounded once. y may be one of xs.
void reduce(Reduction reduction, Dtype dtype, std::span<const std::byte* const> xs, std::byte* y,
            std::int64_t n);

}  // namespace renga
