#include "compression/compression.h"

#include <vector>

#include "devices/rounding.h"
#include "tensor/overlap.h"

namespace renga {

constinit KernelTable<SparseKernels> sparse_kernels{"compression"};
constinit KernelTable<QuantizationKernels> quantization_kernels{"compression"};

namespace {

void check_vector(const char* op, const char* name, const Array& x, Dtype dtype) {
  require(x.dtype() == dtype && (x.size() == 0 || x.is_contiguous()), op,
          ": expected a contiguous array of ", dtype, " as ", name, ", got ", x.shape(), " of ",
          x.dtype());
}

void check_size(const char* op, const char* name, const Array& x, Dtype dtype, std::int64_t size) {
  check_vector(op, name, x, dtype);
  require(x.size() == size, op, ": expected ", size, " elements as ", name, ", got ", x.size());
}

// The device of arrays that share no memory.
Device device_of(const char* op, const std::vector<Array>& arrays) {
  require<std::invalid_argument>(!MemoryRanges(arrays).overlap(), op,
                                 ": expected arrays that do not overlap");
  return arrays[0].device();
}

void check_sparse(const char* op, const Array& x, const Array& indices, const Array& values) {
  check_vector(op, "x", x, Dtype::float32);
  check_vector(op, "values", values, Dtype::float32);
  check_size(op, "indices", indices, Dtype::int32, values.size());
  require<std::invalid_argument>(
      values.size() <= x.size() && x.size() < std::int64_t{1} << 31, op, ": expected at most ",
      x.size(), " values of an array of fewer than 2^31 elements, got ", values.size());
}

void check_random(const char* op, const Array& x, const Array& values) {
  check_vector(op, "x", x, Dtype::float32);
  check_vector(op, "values", values, Dtype::float32);
  require<std::invalid_argument>(values.size() <= x.size(), op, ": expected at most ", x.size(),
                                 " values, got ", values.size());
}

void check_codes(const char* op, const Array& x, int bits, const Array& codes,
                 const Array& scales) {
  require<std::invalid_argument>(bits == 2 || bits == 4 || bits == 8, op,
                                 ": expected 2, 4 or 8 bits, got ", bits);
  check_vector(op, "x", x, Dtype::float32);
  check_size(op, "codes", codes, Dtype::uint8, divide_up(x.size() * bits, 8));
  check_size(op, "scales", scales, Dtype::float32, divide_up(x.size(), kQuantizationBlock));
}

void check_signs(const char* op, const Array& x, const Array& signs, const Array& means) {
  check_vector(op, "x", x, Dtype::float32);
  check_size(op, "signs", signs, Dtype::uint8, divide_up(x.size(), 8));
  check_size(op, "means", means, Dtype::float32, 2 * divide_up(x.size(), kSignBlock));
}

}  // namespace

bool accumulate(const Array& x, const Array& y) {
  check_vector("accumulate", "x", x, Dtype::float32);
  check_size("accumulate", "y", y, Dtype::float32, x.size());
  return sparse_kernels.on(device_of("accumulate", {y, x})).accumulate(x, y);
}

void take_largest(const Array& x, const Array& indices, const Array& values) {
  check_sparse("take_largest", x, indices, values);
  sparse_kernels.on(device_of("take_largest", {x, indices, values}))
      .take_largest(x, indices, values);
}

void add_at(const Array& y, const Array& indices, const Array& values) {
  check_sparse("add_at", y, indices, values);
  sparse_kernels.on(device_of("add_at", {y, indices, values})).add_at(y, indices, values);
}

void take_random(const Array& x, std::uint64_t seed, const Array& values) {
  check_random("take_random", x, values);
  sparse_kernels.on(device_of("take_random", {x, values})).take_random(x, seed, values);
}

void add_at_random(const Array& y, std::uint64_t seed, const Array& values) {
  check_random("add_at_random", y, values);
  sparse_kernels.on(device_of("add_at_random", {y, values})).add_at_random(y, seed, values);
}

void quantize(const Array& x, int bits, std::uint64_t seed, const Array& codes,
              const Array& scales) {
  check_codes("quantize", x, bits, codes, scales);
  quantization_kernels.on(device_of("quantize", {x, codes, scales}))
      .quantize(x, bits, seed, codes, scales);
}

void add_dequantized(const Array& y, int bits, const Array& codes, const Array& scales) {
  check_codes("add_dequantized", y, bits, codes, scales);
  quantization_kernels.on(device_of("add_dequantized", {y, codes, scales}))
      .add_dequantized(y, bits, codes, scales);
}

void take_signs(const Array& x, const Array& signs, const Array& means) {
  check_signs("take_signs", x, signs, means);
  quantization_kernels.on(device_of("take_signs", {x, signs, means})).take_signs(x, signs, means);
}

void add_signs(const Array& y, const Array& signs, const Array& means) {
  check_signs("add_signs", y, signs, means);
  quantization_kernels.on(device_of("add_signs", {y, signs, means})).add_signs(y, signs, means);
}

}  // namespace renga
