// The kernels of the CPU, which cpu/register.cpp puts into the table.
#pragma once

#include <cstdint>

#include "tensor/array.h"

namespace renga::cpu {

bool accumulate(const Array& x, const Array& y);
void take_largest(const Array& x, const Array& indices, const Array& values);
void add_at(const Array& y, const Array& indices, const Array& values);
void take_random(const Array& x, std::uint64_t seed, const Array& values);
void add_at_random(const Array& y, std::uint64_t seed, const Array& values);
void quantize(const Array& x, int bits, std::uint64_t seed, const Array& codes,
              const Array& scales);
void add_dequantized(const Array& y, int bits, const Array& codes, const Array& scales);
void take_signs(const Array& x, const Array& signs, const Array& means);
void add_signs(const Array& y, const Array& signs, const Array& means);

}  // namespace renga::cpu
