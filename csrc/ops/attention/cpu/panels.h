// Matrices in panels, as packed GEMM takes them, for numbers that are float or bfloat16.
#pragma once

#include <algorithm>

#include "devices/rounding.h"
#include "ops/matmul/cpu/packed_gemm.h"
#include "simd/transpose.h"
#include "simd/vector.h"
#include "tensor/array.h"

namespace renga::attention {

// Memory of a thread.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::int64_t size) : array_(empty({size}, dtype_of<T>)) {}
  T* get() const { return array_.as<T>(); }

 private:
  Array array_;
};

// Rows of elements of type T, `step` elements apart.
template <class T>
struct Rows {
  T* data;
  std::int64_t step;

  T* row(std::int64_t i) const { return data + i * step; }
  Rows from(std::int64_t i) const { return {row(i), step}; }
};

// The rows of a head of an array (N, H, rows, columns).
template <class T>
Rows<T> rows_of_head(const Array& x, std::int64_t head) {
  const std::int64_t item = sizeof(T), heads = x.shape(1);
  const std::int64_t offset = head / heads * x.strides()[0] + head % heads * x.strides()[1];
  return {x.as<T>() + offset / item, x.strides()[2] / item};
}

// Panels (padded_rows, kPanel) of a matrix, one after the other, at least one; the padding is 0.
template <class T, class Number>
void pack(const Rows<const T>& from, std::int64_t rows, std::int64_t columns,
          std::int64_t padded_rows, Number* to) {
  simd::dispatch<Number>([=](auto target) __attribute__((always_inline)) {
    using L = simd::Vector<decltype(target), float>;
    for (std::int64_t c = 0; c == 0 || c < columns; c += kPanel) {
      const std::int64_t count = std::min(kPanel, columns - c);
      Number* row = to + c * padded_rows;
      for (std::int64_t r = 0; r < rows; ++r, row += kPanel) {
        const T* const x = from.row(r) + c;
        std::int64_t i = 0;
        for (; i + L::width <= count; i += L::width) L::store(L::load(x + i), row + i);
        for (; i < count; ++i) row[i] = Number(static_cast<float>(x[i]));
        for (; i < kPanel; ++i) row[i] = Number(0.0f);
      }
      std::fill_n(row, (padded_rows - rows) * kPanel, Number(0.0f));
    }
  });
}

// The rows of panels as right operand: as they are, or interleaved in a buffer.
inline const float* interleaved(const float* panels, std::int64_t, float*) { return panels; }
inline const bfloat16* interleaved(const bfloat16* panels, std::int64_t rows, bfloat16* buffer) {
  for (std::int64_t i = 0; i < rows * kPanel; i += 2 * kPanel) {
    for (std::int64_t c = 0; c < kPanel; ++c) {
      buffer[i + 2 * c] = panels[i + c];
      buffer[i + 2 * c + 1] = panels[i + kPanel + c];
    }
  }
  return buffer;
}

// Panels of floats as numbers: as they are, or rounded to a buffer.
inline const float* as_numbers(const float* panels, std::int64_t, float*) { return panels; }
inline const bfloat16* as_numbers(const float* panels, std::int64_t size, bfloat16* buffer) {
  simd::dispatch<bfloat16>([=](auto target) __attribute__((always_inline)) {
    using L = simd::Vector<decltype(target), float>;
    for (std::int64_t i = 0; i < size; i += L::width) L::store(L::load(panels + i), buffer + i);
  });
  return buffer;
}

// The transpose of a square of words. Rows are `from_step` and kPanel words apart.
template <class Target>
[[gnu::always_inline]] inline void transpose_square(const float* from, std::int64_t from_step,
                                                    float* to) {
  constexpr int n = Target::width;
  simd::Floats<Target> rows[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) rows[i] = simd::load_floats<Target>(from + i * from_step);
  simd::transpose<Target>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) simd::store_floats<Target>(rows[i], to + i * kPanel);
}

// Makes, from panels of a matrix (rows, columns), multiples of kPanel, the right operands for the
// products with its transpose: for each kPanel rows the transpose (columns, kPanel), interleaved.
template <class Number>
void transpose_panels(const Number* panels, std::int64_t rows, std::int64_t columns, Number* to) {
  // Words are floats, or pairs of bfloat16 numbers, whose order the transpose keeps.
  constexpr std::int64_t words = kPanel * static_cast<std::int64_t>(sizeof(Number)) / 4;
  const auto* from = reinterpret_cast<const float*>(panels);
  auto* result = reinterpret_cast<float*>(to);
  simd::dispatch_for<float>([=](auto target) __attribute__((always_inline)) {
    constexpr int n = decltype(target)::width;
    for (std::int64_t block = 0; block < rows; block += kPanel) {
      for (std::int64_t c = 0; c < columns; c += kPanel) {
        const float* const square = from + (c / kPanel * rows + block) * words;
        float* const transposed =
            result + (block / kPanel * (columns / kPanel) + c / kPanel) * words * kPanel;
        for (std::int64_t i = 0; i < kPanel; i += n) {
          for (std::int64_t j = 0; j < words; j += n) {
            transpose_square<decltype(target)>(square + i * words + j, words,
                                               transposed + j * kPanel + i);
          }
        }
      }
    }
  });
}

// Rows of T from panels (padded_rows, kPanel), row r times factors[r] if there are factors.
template <class T>
void unpack(const float* panels, std::int64_t padded_rows, std::int64_t rows, std::int64_t columns,
            const float* factors, const Rows<T>& to) {
  simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
    using L = simd::Vector<decltype(target), float>;
    for (std::int64_t c = 0; c < columns; c += kPanel) {
      const std::int64_t count = std::min(kPanel, columns - c);
      for (std::int64_t r = 0; r < rows; ++r) {
        const float* const x = panels + c * padded_rows + r * kPanel;
        const float factor = factors ? factors[r] : 1.0f;
        T* const y = to.row(r) + c;
        std::int64_t i = 0;
        for (; i + L::width <= count; i += L::width) L::store(L::load(x + i) * factor, y + i);
        for (; i < count; ++i) y[i] = T(x[i] * factor);
      }
    }
  });
}

}  // namespace renga::attention
