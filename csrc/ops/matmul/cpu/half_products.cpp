#include <algorithm>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/cpu/dot_product.h"
#include "ops/matmul/cpu/float_products.h"
#include "ops/matmul/cpu/operands.h"
#include "tensor/views.h"

namespace renga {
namespace {

// Numbers that are converted to floats at once, so that they stay in the second-level cache.
constexpr std::int64_t kConvertedNumbers = 1 << 17;

// Adds the products of parts of the depth, which have so many terms. A bias is added before the
// result is rounded.
void multiply_whole_in_float32(const Array& a, const Array& b, const Array& c,
                               const Epilogue& epilogue, std::int64_t terms) {
  const std::int64_t depth = a.shape(a.ndim() - 1);
  const bool in_place = c.dtype() == Dtype::float32;
  const bool adds = epilogue.accumulates && !epilogue.bias.defined();
  const Array wide = in_place ? c
                     : adds   ? cast(c, Dtype::float32)
                              : empty(c.shape(), Dtype::float32);
  Epilogue added = epilogue;
  for (std::int64_t i = 0; i < depth; i += terms) {
    const std::int64_t n = std::min(terms, depth - i);
    const Array left = slice_view(a, a.ndim() - 1, i, n), right = slice_view(b, b.ndim() - 2, i, n);
    multiply_floats(cast(left, Dtype::float32), cast(right, Dtype::float32), wide, added, nullptr);
    added = {.accumulates = true};
  }
  if (!in_place) copy(wide, c);
}

void multiply_whole_in_float32(const Array& a, const Array& b, const Array& c,
                               const Epilogue& epilogue) {
  multiply_whole_in_float32(a, b, c, epilogue, a.shape(a.ndim() - 1));
}

// Returns how many terms of the sums are computed at a time: all, but where a vector or a few of
// them meet lines that adjoin across the depth. To convert all of these at once would take longer
// than the product.
std::int64_t terms_at_once(const Array& a, const Array& b, const Array& c) {
  constexpr std::int64_t kFewLines = 32;
  const auto [m, n, k] = sizes_of(a, c);
  if (std::min(m, n) > kFewLines || c.size() > kConvertedNumbers) return k;
  const bool are_across = m < n ? !as_matrix(b).transposed : as_matrix(a).transposed;
  if (!are_across) return k;
  return std::clamp<std::int64_t>(kConvertedNumbers * k / (a.size() + b.size()), 1, k);
}

// c = a b, where one operand is a vector of numbers of 16 bits and the other has lines along the
// depth: all are read once, as they are. Returns whether the operands are so.
template <class T>
bool multiply_lines(const Array& a, const Array& b, const Array& c, const Epilogue& epilogue) {
  const auto has_dtype = [](const Array& x) { return x.dtype() == dtype_of<T>; };
  if (!has_dtype(a) || !has_dtype(b) || !has_dtype(c)) return false;
  if (c.ndim() != 2 || epilogue.accumulates || epilogue.bias.defined()) return false;
  const Matrix left = as_matrix(a), right = as_matrix(b);
  const auto [m, n, k] = sizes_of(a, c);
  const bool is_column = n == 1 && (right.transposed || right.leading == 1);
  if (left.transposed || !(is_column || (m == 1 && right.transposed))) return false;
  const Matrix &vector = is_column ? right : left, &lines = is_column ? left : right;
  T* const to = c.as<T>();
  parallel_for(c.size(), k / 8, [&, k = k](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      to[i] = T(dot_product(lines.at<T>(0) + i * lines.leading, vector.at<T>(0), k));
    }
  });
  return true;
}

// c = a b of depth 1, where all have numbers of one dtype of 16 bits, or of bfloat16 and float32.
// Returns whether it is so.
bool multiply_outer_halves(const Array& a, const Array& b, const Array& c,
                           const Epilogue& epilogue) {
  const auto fits = [&](const Array& x) {
    return x.dtype() == c.dtype() || (is_activation(x.dtype()) && is_activation(c.dtype()));
  };
  if (a.shape(a.ndim() - 1) != 1 || !fits(a) || !fits(b)) return false;
  if (epilogue.accumulates || epilogue.bias.defined()) return false;
  elementwise_kernels.on(c.device())
      .binary(Binary::multiply, 0, broadcast_view("matmul", a, c.shape()),
              broadcast_view("matmul", b, c.shape()), c);
  return true;
}

// Calls body(i, n) for parts [i, i + n) of `count` elements, each of at most `most`; threads share
// them out.
template <class Body>
void for_parts_of(std::int64_t count, std::int64_t most, std::int64_t cost, const Body& body) {
  parallel_for(divide_up(count, most), most * cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * most; i < std::min(end * most, count); i += most) {
      body(i, std::min(most, count - i));
    }
  });
}

// c = a b for stacks of matrices, in float32, some pairs at a time.
void multiply_stack_in_float32(const Array& a, const Array& b, const Array& c,
                               const Epilogue& epilogue) {
  const std::int64_t count = c.shape(0);
  const std::int64_t pairs = kConvertedNumbers * count / (a.size() + b.size() + c.size());
  if (pairs == 0 && c.ndim() > 3) {
    for (std::int64_t i = 0; i < count; ++i) {
      multiply_stack_in_float32(select_view(a, 0, i), select_view(b, 0, i), select_view(c, 0, i),
                                epilogue);
    }
    return;
  }
  if (pairs == 0 || pairs >= count) return multiply_whole_in_float32(a, b, c, epilogue);
  const auto part = [](const Array& x, std::int64_t i, std::int64_t n) {
    if (x.strides()[0] != 0) return cast(slice_view(x, 0, i, n), Dtype::float32);
    Shape shape = x.shape();
    shape[0] = n;
    return broadcast_view("matmul", cast(slice_view(x, 0, 0, 1), Dtype::float32), shape);
  };
  for_parts_of(
      count, pairs, c.size() / count * a.shape(a.ndim() - 1), [&](std::int64_t i, std::int64_t n) {
        multiply_whole_in_float32(part(a, i, n), part(b, i, n), slice_view(c, 0, i, n), epilogue);
      });
}

}  // namespace

void multiply_in_float32(const Array& a, const Array& b, const Array& c, const Epilogue& epilogue) {
  if (multiply_outer_halves(a, b, c, epilogue) || multiply_lines<bfloat16>(a, b, c, epilogue) ||
      multiply_lines<float16>(a, b, c, epilogue)) {
    return;
  }
  if (c.ndim() > 2) return multiply_stack_in_float32(a, b, c, epilogue);
  if (const std::int64_t terms = terms_at_once(a, b, c); terms < a.shape(1)) {
    return multiply_whole_in_float32(a, b, c, epilogue, terms);
  }
  const std::int64_t count = c.shape(0), rows = kConvertedNumbers * count / (a.size() + c.size());
  if (b.size() > kConvertedNumbers || rows == 0 || rows >= count) {
    return multiply_whole_in_float32(a, b, c, epilogue);
  }
  const Array weights = cast(b, Dtype::float32);
  for_parts_of(count, rows, c.shape(1) * a.shape(1), [&](std::int64_t i, std::int64_t n) {
    multiply_whole_in_float32(slice_view(a, 0, i, n), weights, slice_view(c, 0, i, n), epilogue);
  });
}

}  // namespace renga
