// Compression of gradients: what is sent of a vector, and how it becomes a vector again.
//
// Vectors are float32; all arrays are contiguous and do not overlap. Functions that take something
// from x leave in x what is not sent, the residual of error feedback.
#pragma once

#include <cstdint>

#include "devices/kernel_table.h"
#include "tensor/array.h"

namespace renga {

// Elements of a block that is quantized with a scale of its own.
inline constexpr std::int64_t kQuantizationBlock = 512;
// Elements of a block whose signs are sent with two means.
inline constexpr std::int64_t kSignBlock = 4096;

// y += x, unless an element of x is not finite or so large that sums of many would not be, from
// 2^100 on: then false, and y is unchanged.
bool accumulate(const Array& x, const Array& y);

// The elements of the largest magnitude, in the order of their int32 indices; they become zero in
// x. NaN counts as the largest; of equal magnitudes, those in front are taken.
void take_largest(const Array& x, const Array& indices, const Array& values);
// y[indices] += values. Indices are unique.
void add_at(const Array& y, const Array& indices, const Array& values);

// One random element of each of as many equal parts of x as there are values; they become zero in
// x.
void take_random(const Array& x, std::uint64_t seed, const Array& values);
// Adds the values to the elements that take_random() takes with this seed.
void add_at_random(const Array& y, std::uint64_t seed, const Array& values);

// Rounds each element at random to one of the neighbouring multiples of M / s, where M is the
// largest magnitude of its block, one of `scales`, and s = 2^(bits-1) - 1; its expectation is the
// element. `codes` (uint8) holds sign and multiple, of `bits` 2, 4 or 8. A block that is not finite
// becomes NaN.
//
// Source: Alistarh et al., QSGD, NIPS 2017, with maxima instead of Euclidean norms (their section
// on implementation); with 2 bits Wen et al., TernGrad, NIPS 2017.
void quantize(const Array& x, int bits, std::uint64_t seed, const Array& codes,
              const Array& scales);
void add_dequantized(const Array& y, int bits, const Array& codes, const Array& scales);

// The sign of each element, one bit of `signs` (uint8), and the means (blocks, 2) of each block's
// negative and other elements, which are subtracted from x.
//
// Source: Seide et al., 1-bit stochastic gradient descent, Interspeech 2014.
void take_signs(const Array& x, const Array& signs, const Array& means);
void add_signs(const Array& y, const Array& signs, const Array& means);

// The kernels of these functions, called with arguments that have been checked.
struct SparseKernels {
  decltype(&renga::accumulate) accumulate;
  decltype(&renga::take_largest) take_largest;
  decltype(&renga::add_at) add_at;
  decltype(&renga::take_random) take_random;
  decltype(&renga::add_at_random) add_at_random;
};
extern KernelTable<SparseKernels> sparse_kernels;
struct QuantizationKernels {
  decltype(&renga::quantize) quantize;
  decltype(&renga::add_dequantized) add_dequantized;
  decltype(&renga::take_signs) take_signs;
  decltype(&renga::add_signs) add_signs;
};
extern KernelTable<QuantizationKernels> quantization_kernels;

// An argument, and one that is written.
struct In {
  const char* name;
};
struct Out {
  const char* name;
};

// Names each function once, for the Python binding.
template <class Visit>
void list_compression_functions(Visit&& visit) {
  visit("accumulate", &accumulate, "Adds x to y and returns True, unless x has overflowed.",
        In{"x"}, Out{"y"});
  visit("take_largest", &take_largest, "Moves the elements of the largest magnitude out of x.",
        Out{"x"}, Out{"indices"}, Out{"values"});
  visit("add_at", &add_at, "Adds values to the elements of y at these indices.", Out{"y"},
        In{"indices"}, In{"values"});
  visit("take_random", &take_random, "Moves a random element of each of equal parts out of x.",
        Out{"x"}, In{"seed"}, Out{"values"});
  visit("add_at_random", &add_at_random, "Adds values to the elements that take_random takes.",
        Out{"y"}, In{"seed"}, In{"values"});
  visit("quantize", &quantize, "Rounds x at random to multiples of scales.", In{"x"}, In{"bits"},
        In{"seed"}, Out{"codes"}, Out{"scales"});
  visit("add_dequantized", &add_dequantized, "Adds what was quantized to y.", Out{"y"}, In{"bits"},
        In{"codes"}, In{"scales"});
  visit("take_signs", &take_signs, "Moves signs and the means of both signs out of x.", Out{"x"},
        Out{"signs"}, Out{"means"});
  visit("add_signs", &add_signs, "Adds the mean of each element's sign to y.", Out{"y"},
        In{"signs"}, In{"means"});
}

}  // namespace renga
