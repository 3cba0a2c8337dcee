// Softmax of a row of numbers in cache: of floats in vectors of the machine's width, of doubles in
// those of one width (simd/elementary.h). The result `y` may be x.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "simd/blocked_loop.h"
#include "simd/elementary.h"
#include "simd/float_vector.h"

namespace renga {
namespace softmax_rows {

inline constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Calls body(v, i, count) with vectors that cover [0, n), of which the last `count` may be fewer
// numbers of x and `filling`.
template <class Target, class Body>
[[gnu::always_inline]] inline void for_vectors(const float* x, std::int64_t n, float filling,
                                               const Body& body) {
  constexpr std::int64_t width = Target::width;
  std::int64_t i = 0;
  for (; i + width <= n; i += width) body(simd::load_floats<Target>(x + i), i, width);
  if (i == n) return;
  float rest[width];
  std::fill_n(rest, width, filling);
  std::copy(x + i, x + n, rest);
  body(simd::load_floats<Target>(rest), i, n - i);
}

template <class Target>
[[gnu::always_inline]] inline void store_some(const simd::Floats<Target>& v, std::int64_t count,
                                              float* to) {
  if (count == Target::width) return simd::store_floats<Target>(v, to);
  float all[Target::width];
  simd::store_floats<Target>(v, all);
  std::copy_n(all, count, to);
}

// All lanes of v, put together in pairs.
template <class Target, class Operation>
[[gnu::always_inline]] inline float reduce_lanes(const simd::Floats<Target>& v,
                                                 const Operation& operation) {
  float lanes[Target::width];
  simd::store_floats<Target>(v, lanes);
#pragma GCC unroll 4
  for (int half = Target::width / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int k = 0; k < half; ++k) lanes[k] = operation(lanes[k], lanes[k + half]);
  }
  return lanes[0];
}

// NaN is not the maximum; it appears in the sum.
inline float row_maximum(const float* x, std::int64_t n) {
  float top = x[0];
  simd::dispatch_for<float>([&](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using V = simd::Floats<Target>;
    constexpr std::int64_t width = Target::width, group = 4 * width;
    V tops[4];
    for (V& each : tops) each = V{} + x[0];
    const std::int64_t whole = n / group * group;
    for (std::int64_t i = 0; i < whole; i += group) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const V v = simd::load_floats<Target>(x + i + k * width);
        tops[k] = v > tops[k] ? v : tops[k];
      }
    }
    for_vectors<Target>(
        x + whole, n - whole,
        kNothing, [&](const V& v, std::int64_t, std::int64_t) __attribute__((always_inline)) {
          tops[0] = v > tops[0] ? v : tops[0];
        });
    for (int k = 1; k < 4; ++k) tops[0] = tops[k] > tops[0] ? tops[k] : tops[0];
    top = reduce_lanes<Target>(tops[0], [](float a, float b) { return a > b ? a : b; });
  });
  return top;
}

inline double row_maximum(const double* x, std::int64_t n) { return *std::max_element(x, x + n); }

// The sum of e^(x - top). The terms are stored in `terms` if it is no nullptr.
inline double sum_exponentials(const float* x, std::int64_t n, float top, float* terms) {
  double total = 0;
  simd::dispatch_for<float>([&](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using V = simd::Floats<Target>;
    // Sums of so many numbers are summed up in double.
    constexpr std::int64_t kNumbers = 512;
    for (std::int64_t begin = 0; begin < n; begin += kNumbers) {
      V sum{};
      for_vectors<Target>(
          x + begin, std::min(kNumbers, n - begin), kNothing,
          [&](const V& v, std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
            const V term = simd::exponential<Target>(v - top);
            sum += term;
            if (terms != nullptr) {
              store_some<Target>(term, count, terms + begin + i);
            }
          });
      total +=
          static_cast<double>(reduce_lanes<Target>(sum, [](float a, float b) { return a + b; }));
    }
  });
  return total;
}

inline double sum_exponentials(const double* x, std::int64_t n, double top, double* terms) {
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double term = std::exp(x[i] - top);
    total += term;
    if (terms != nullptr) terms[i] = term;
  }
  return total;
}

// y = e^((x - top) - shift) factor.
inline void exponentials(const float* x, std::int64_t n, float top, float shift, float factor,
                         float* y) {
  simd::dispatch_for<float>([=](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using V = simd::Floats<Target>;
    for_vectors<Target>(
        x, n,
        top, [=](const V& v, std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
          const V exponentials = simd::exponential<Target>((v - top) - shift);
          store_some<Target>(exponentials * factor, count, y + i);
        });
  });
}

inline void exponentials(const double* x, std::int64_t n, double top, double shift, double factor,
                         double* y) {
  using V = simd::Vector<simd::Avx2, double>;
  simd::map_on<simd::Avx2>(
      y, n, [=](const V& v) { return exp((v - V(top)) - V(shift)) * V(factor); }, x);
}

}  // namespace softmax_rows

// log softmax(x) = (x - top) - shift, where shift is the logarithm of the sum of e^(x - top).
template <class C>
struct SoftmaxNormalizer {
  C top, shift;
};

template <class C>
SoftmaxNormalizer<C> softmax_normalizer(const C* x, std::int64_t n) {
  const C top = softmax_rows::row_maximum(x, n);
  return {top, static_cast<C>(
                   std::log(softmax_rows::sum_exponentials(x, n, top, static_cast<C*>(nullptr))))};
}

// y = softmax(x), or its logarithm.
template <class C>
void softmax_row(const C* x, std::int64_t n, bool log, C* y) {
  const C top = softmax_rows::row_maximum(x, n);
  const double total = softmax_rows::sum_exponentials(x, n, top, log ? nullptr : y);
  const C shift = static_cast<C>(std::log(total)), scale = static_cast<C>(1 / total);
  for (std::int64_t i = 0; i < n; ++i) y[i] = log ? (x[i] - top) - shift : y[i] * scale;
}

// gx = y (gy - sum(y gy)), or gy - e^y sum(gy) where y is the logarithm.
template <class C>
void softmax_grad_row(const C* y, const C* gy, std::int64_t n, bool log, C* gx) {
  constexpr std::int64_t kPartials = 8;  // independent sums, which the compiler vectorizes
  double sums[kPartials] = {};
  const auto term = [=](std::int64_t i) { return log ? gy[i] : y[i] * gy[i]; };
  std::int64_t i = 0;
  for (; i + kPartials <= n; i += kPartials) {
    for (std::int64_t k = 0; k < kPartials; ++k) {
      sums[k] += static_cast<double>(term(i + k));
    }
  }
  for (; i < n; ++i) sums[0] += static_cast<double>(term(i));
  double total = 0;
  for (const double sum : sums) total += sum;
  const C t = static_cast<C>(total);
  if (log) softmax_rows::exponentials(y, n, C(0), C(0), t, gx);
  for (i = 0; i < n; ++i) gx[i] = log ? gy[i] - gx[i] : y[i] * (gy[i] - t);
}

// A row of an operand, `step` bytes apart: in place where its numbers are contiguous and of the
// compute type, else in a buffer.
template <class T>
class RowBuffer {
 public:
  RowBuffer(std::int64_t step, std::int64_t n) : step_(step), n_(n) {
    if (!in_place()) numbers_.resize(static_cast<std::size_t>(n));
  }
  Compute<T>* at(std::byte* data) {
    if constexpr (std::is_same_v<T, Compute<T>>) {
      if (in_place()) return reinterpret_cast<T*>(data);
    }
    return numbers_.data();
  }
  const Compute<T>* read(std::byte* data) {
    if (!in_place()) simd::gather<T>(data, step_, n_, numbers_.data());
    return at(data);
  }
  void write(std::byte* data) {
    if (!in_place()) simd::scatter<T>(numbers_.data(), data, step_, n_);
  }

 private:
  bool in_place() const { return std::is_same_v<T, Compute<T>> && step_ == sizeof(T); }

  std::int64_t step_, n_;
  std::vector<Compute<T>> numbers_;
};

}  // namespace renga
