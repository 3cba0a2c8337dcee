// Copies between arrays of different memory orders, element by element.
#include "tensor/copy.h"

#include <doctest/doctest.h>

#include <cstring>

#include "tensor/views.h"

namespace renga {
namespace {

// The numbers 0, 1, … as bytes of their own in memory order.
Array counted(const Shape& shape, Dtype dtype) {
  const Array x = empty(shape, dtype);
  auto* const bytes = reinterpret_cast<unsigned char*>(x.data());
  for (std::int64_t i = 0; i < x.size() * x.itemsize(); ++i) {
    bytes[i] = static_cast<unsigned char>(i * 7 + i / 256 + i / 65536);
  }
  return x;
}

void check_transposed(std::int64_t samples, std::int64_t rows, std::int64_t columns, Dtype dtype) {
  const Array x = counted({samples, rows, columns}, dtype);
  const Array y = contiguous(transpose_view(x, {0, 2, 1}));
  const auto size = x.itemsize();
  for (std::int64_t n = 0; n < samples; ++n) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::byte* const from = x.data() + ((n * rows + i) * columns + j) * size;
        const std::byte* const to = y.data() + ((n * columns + j) * rows + i) * size;
        REQUIRE(std::memcmp(from, to, static_cast<std::size_t>(size)) == 0);
      }
    }
  }
}

TEST_CASE("every second number is filled, and no other") {
  for (const double value : {0.0, -0.0, 2.0}) {
    const Array x = full({4, 6}, 1, Dtype::float32);
    fill(Array(x.storage(), x.data(), {4, 3}, {24, 8}, Dtype::float32), value);
    for (int i = 0; i < 24; ++i) CHECK(x.as<float>()[i] == (i % 2 == 0 ? value : 1));
  }
}

TEST_CASE("transposes of any extents and sizes of elements") {
  for (Dtype dtype : {Dtype::uint8, Dtype::float16, Dtype::float32, Dtype::float64}) {
    for (std::int64_t rows : {16, 17, 31, 64, 129}) {
      for (std::int64_t columns : {16, 23, 33, 256, 300}) check_transposed(2, rows, columns, dtype);
    }
  }
}

TEST_CASE("transposes that are streamed") { check_transposed(1, 1030, 1100, Dtype::float32); }

}  // namespace
}  // namespace renga
