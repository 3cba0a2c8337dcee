// Softmax of a row of numbers in cache, in vectors of the machine's width.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "simd/blocked_loop.h"
#include "simd/elementary.h"
#include "simd/first_floats.h"

namespace renga {
namespace softmax_rows {

template <class C>
constexpr C kNothing = -std::numeric_limits<C>::infinity();

template <class Target, class C>
[[gnu::always_inline]] inline void store_some(const simd::Vector<Target, C>& v, std::int64_t count,
                                              C* to) {
  using V = simd::Vector<Target, C>;
  if (count == V::width) return V::store(v, to);
  simd::store_first<Target>(v.v, to, static_cast<int>(count));
}

// NaN is not the maximum; it appears in the sum.
template <class C>
C row_maximum(const C* x, std::int64_t n) {
  C top = x[0];
  simd::dispatch_for<C>([&](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using V = simd::Vector<Target, C>;
    constexpr std::int64_t width = V::width, group = 4 * width;
    V tops[4];
    for (V& each : tops) each = V(x[0]);
    const std::int64_t whole = n / group * group;
    for (std::int64_t i = 0; i < whole; i += group) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) tops[k] = max(V(V::load(x + i + k * width)), tops[k]);
    }
    simd::for_vectors<Target>(
        x + whole, n - whole,
        kNothing<C>, [&](const V& v, std::int64_t, std::int64_t) __attribute__((always_inline)) {
          tops[0] = max(v, tops[0]);
        });
    for (int k = 1; k < 4; ++k) tops[0] = max(tops[k], tops[0]);
    top = simd::fold_lanes(
        tops[0], [](const V& a, const V& b) __attribute__((always_inline)) { return max(a, b); });
  });
  return top;
}

// The sum of e^(x - top). The terms are stored in `terms` if it is no nullptr.
template <class C>
double sum_exponentials(const C* x, std::int64_t n, C top, C* terms) {
  double total = 0;
  simd::dispatch_for<C>([&](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using V = simd::Vector<Target, C>;
    // Sums of so many numbers are summed up in double.
    constexpr std::int64_t kNumbers = 512;
    for (std::int64_t begin = 0; begin < n; begin += kNumbers) {
      V sum(C(0));
      simd::for_vectors<Target>(
          x + begin, std::min(kNumbers, n - begin), kNothing<C>,
          [&](const V& v, std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
            const V term = exp_of_negative(v - V(top));
            sum = sum + term;
            if (terms != nullptr) store_some(term, count, terms + begin + i);
          });
      total += static_cast<double>(V::sum(sum.v));
    }
  });
  return total;
}

// y = e^((x - top) - shift) factor.
template <class C>
void exponentials(const C* x, std::int64_t n, C top, C shift, C factor, C* y) {
  simd::dispatch_for<C>([=](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using V = simd::Vector<Target, C>;
    simd::for_vectors<Target>(
        x, n,
        top, [=](const V& v, std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
          store_some(exp_of_negative((v - V(top)) - V(shift)) * V(factor), count, y + i);
        });
  });
}

}  // namespace softmax_rows

// log softmax(x) = (x - top) - shift, where shift is the logarithm of the sum
// of e^(x - top).
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

// The same of numbers of 16 bits, which are read as they are. They are few enough between two sums
// in double for floats to add up.
template <class T>
requires is_half<T>
void softmax_grad_row(const T* y, const T* gy, std::int64_t n, bool log, T* gx) {
  constexpr std::int64_t kNumbers = 512;
  simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
    using V = simd::Vector<decltype(target), float>;
    double total = 0;
    for (std::int64_t begin = 0; begin < n; begin += kNumbers) {
      const std::int64_t end = std::min(n, begin + kNumbers);
      V sums[2] = {V(0.0f), V(0.0f)};
      const auto add = [=](V & sum, std::int64_t i) __attribute__((always_inline)) {
        const V g(V::load(gy + i));
        sum = sum + (log ? g : V(V::load(y + i)) * g);
      };
      std::int64_t i = begin;
      for (; i + 2 * V::width <= end; i += 2 * V::width) {
        add(sums[0], i);
        add(sums[1], i + V::width);
      }
      for (; i + V::width <= end; i += V::width) add(sums[0], i);
      total += static_cast<double>(V::sum((sums[0] + sums[1]).v));
      for (; i < end; ++i) {
        total += static_cast<double>(log ? float{gy[i]} : float{y[i]} * float{gy[i]});
      }
    }
    const float sum = static_cast<float>(total);
    simd::for_each_vector<decltype(target), float>(
        0, n, [=]<class L>(L, std::int64_t i) __attribute__((always_inline)) {
          using W = typename L::Value;
          const W v(L::load(y + i)), g(L::load(gy + i)), t(sum);
          const auto exponential = [](const W& u) __attribute__((always_inline)) {
            if constexpr (L::width == 1) {
              return std::exp(u);
            } else {
              return simd::exp_of_negative(u);
            }
          };
          L::store(log ? g - exponential(v) * t : v * (g - t), gx + i);
        });
  });
}

// A row of an operand, `step` bytes apart: in place where its numbers are
// contiguous and of the compute type, else in a buffer.
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
