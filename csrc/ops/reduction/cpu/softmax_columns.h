// Softmax along an axis whose elements do not adjoin, or of short rows: of 64 positions together,
// whose numbers are the lanes of vectors (softmax_row.h has that of a long row).
#pragma once

#include "ops/reduction/cpu/softmax_row.h"

namespace renga {

// Numbers of 64 positions: those of a position are `step` apart, and positions adjoin.
inline constexpr std::int64_t kColumns = 64;
template <class Number>
struct Columns {
  Number* data;
  std::int64_t step;
  Number* row(std::int64_t i) const { return data + i * step; }
};

// Whether to compute n numbers of a position along `axis` of x by columns. It does not depend on
// threads.
template <class T>
bool suits_columns(const Array& x, int axis) {
  const std::int64_t n = x.shape(axis);
  constexpr std::int64_t kShort = 96, kMost = 1 << 14;
  const bool adjoin = x.strides()[axis] == sizeof(T);
  return std::is_same_v<Compute<T>, float> && n <= (adjoin ? kShort : kMost) &&
         x.size() >= kColumns * n;
}

// Calls body(first, count) for blocks of 64 positions that cover [0, m), of which the last may
// overlap the one before it, or for fewer positions if there are no more.
template <class Body>
void for_column_blocks(std::int64_t m, const Body& body) {
  if (m < kColumns) return body(std::int64_t{0}, m);
  for (std::int64_t j = 0; j < m; j += kColumns) body(std::min(j, m - kColumns), kColumns);
}

// Columns of an operand: in place where they are 64 adjoining floats, else in a buffer.
template <class T>
class ColumnBuffer {
 public:
  // Bytes from a number of a position to the next, and from a position to the next.
  ColumnBuffer(std::int64_t step, std::int64_t position_step, std::int64_t n)
      : step_(step), position_step_(position_step), n_(n) {}

  Columns<float> at(std::byte* data, std::int64_t count) {
    if constexpr (std::is_same_v<T, float>) {
      if (in_place(count)) {
        return {reinterpret_cast<float*>(data), step_ / static_cast<int>(sizeof(float))};
      }
    }
    numbers_.resize(static_cast<std::size_t>(n_ * kColumns));
    return {numbers_.data(), kColumns};
  }
  Columns<const float> read(std::byte* data, std::int64_t count) {
    const Columns<float> to = at(data, count);
    if (!in_place(count)) {
      move(data, count, [](float& number, T& element) { number = static_cast<float>(element); });
    }
    return {to.data, to.step};
  }
  void write(std::byte* data, std::int64_t count) {
    if (in_place(count)) return;
    move(data, count, [](const float& number, T& element) { element = T(number); });
  }

 private:
  bool in_place(std::int64_t count) const {
    return std::is_same_v<T, float> && position_step_ == sizeof(T) && count == kColumns;
  }
  // Memory is visited in its order.
  template <class Move>
  void move(std::byte* data, std::int64_t count, const Move& move_one) {
    const auto visit = [&](std::int64_t i, std::int64_t j) {
      move_one(numbers_[static_cast<std::size_t>(i * kColumns + j)],
               *reinterpret_cast<T*>(data + i * step_ + j * position_step_));
    };
    if (step_ < position_step_) {
      for (std::int64_t j = 0; j < count; ++j) {
        for (std::int64_t i = 0; i < n_; ++i) visit(i, j);
      }
    } else {
      for (std::int64_t i = 0; i < n_; ++i) {
        for (std::int64_t j = 0; j < count; ++j) visit(i, j);
      }
    }
  }

  std::int64_t step_, position_step_, n_;
  std::vector<float> numbers_;
};

namespace softmax_columns {

// The largest number of each position; NaN is not the maximum, it appears in the sum.
inline void maxima(const Columns<const float>& x, std::int64_t n, float* tops) {
  simd::dispatch_for<float>([&](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    constexpr int width = Target::width, count = kColumns / width;
    simd::Floats<Target> top[count];
    for (int k = 0; k < count; ++k) top[k] = simd::load_floats<Target>(x.row(0) + k * width);
    for (std::int64_t i = 1; i < n; ++i) {
#pragma GCC unroll 8
      for (int k = 0; k < count; ++k) {
        const simd::Floats<Target> v = simd::load_floats<Target>(x.row(i) + k * width);
        top[k] = v > top[k] ? v : top[k];
      }
    }
    for (int k = 0; k < count; ++k) simd::store_floats<Target>(top[k], tops + k * width);
  });
}

// Adds term(target, i, k), vectors of floats for columns from k on, over all i. So many floats are
// summed up in double.
template <class Term>
void sum_terms(std::int64_t n, const Term& term, double* totals) {
  std::fill_n(totals, kColumns, 0.0);
  simd::dispatch_for<float>([&](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    constexpr int width = Target::width, count = kColumns / width;
    constexpr std::int64_t kRows = 32;
    for (std::int64_t begin = 0; begin < n; begin += kRows) {
      simd::Floats<Target> sum[count] = {};
      for (std::int64_t i = begin; i < std::min(n, begin + kRows); ++i) {
#pragma GCC unroll 8
        for (int k = 0; k < count; ++k) sum[k] += term(target, i, k * width);
      }
      float sums[kColumns];
      for (int k = 0; k < count; ++k) simd::store_floats<Target>(sum[k], sums + k * width);
      for (int k = 0; k < kColumns; ++k) totals[k] += static_cast<double>(sums[k]);
    }
  });
}

// Stores value(target, i, k) into y.
template <class Value>
void store_values(const Columns<float>& y, std::int64_t n, const Value& value) {
  simd::dispatch_for<float>([&](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    constexpr int width = Target::width;
    for (std::int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 8
      for (int k = 0; k < kColumns; k += width) {
        simd::store_floats<Target>(value(target, i, k), y.row(i) + k);
      }
    }
  });
}

// Terms e^(x - top), which are stored in `terms` if it has data.
inline void sum_exponentials(const Columns<const float>& x, std::int64_t n, const float* tops,
                             const Columns<float>& terms, double* totals) {
  sum_terms(
      n,
      [=](auto target, std::int64_t i, int k) __attribute__((always_inline)) {
        using Target = decltype(target);
        const auto term = simd::exponential<Target>(simd::load_floats<Target>(x.row(i) + k) -
                                                    simd::load_floats<Target>(tops + k));
        if (terms.data != nullptr) simd::store_floats<Target>(term, terms.row(i) + k);
        return term;
      },
      totals);
}

// The logarithms of sums.
inline void logarithms(double* totals, float* shifts) {
  using V = simd::Vector<simd::Avx2, double>;
  simd::map_on<simd::Avx2>(
      totals, kColumns, [](const V& v) { return log(v); }, totals);
  std::copy_n(totals, kColumns, shifts);
}

}  // namespace softmax_columns

// log softmax(x) = (x - top) - shift for each position (softmax_row.h).
struct ColumnNormalizers {
  float tops[kColumns], shifts[kColumns];
};

inline ColumnNormalizers column_normalizers(const Columns<const float>& x, std::int64_t n) {
  ColumnNormalizers all;
  double totals[kColumns];
  softmax_columns::maxima(x, n, all.tops);
  softmax_columns::sum_exponentials(x, n, all.tops, {nullptr, 0}, totals);
  softmax_columns::logarithms(totals, all.shifts);
  return all;
}

// y = e^((x - top) - shift) factor, with a factor for each position.
inline void column_exponentials(const Columns<const float>& x, std::int64_t n,
                                const ColumnNormalizers& all, const float* factors,
                                const Columns<float>& y) {
  softmax_columns::store_values(
      y, n, [ =, &all ](auto target, std::int64_t i, int k) __attribute__((always_inline)) {
        using Target = decltype(target);
        const auto v =
            simd::load_floats<Target>(x.row(i) + k) - simd::load_floats<Target>(all.tops + k);
        return simd::exponential<Target>(v - simd::load_floats<Target>(all.shifts + k)) *
               simd::load_floats<Target>(factors + k);
      });
}

// y = softmax(x), or its logarithm.
inline void softmax_of_columns(const Columns<const float>& x, std::int64_t n, bool log,
                               const Columns<float>& y) {
  if (log) {
    const ColumnNormalizers all = column_normalizers(x, n);
    softmax_columns::store_values(
        y, n, [ =, &all ](auto target, std::int64_t i, int k) __attribute__((always_inline)) {
          using Target = decltype(target);
          return (simd::load_floats<Target>(x.row(i) + k) -
                  simd::load_floats<Target>(all.tops + k)) -
                 simd::load_floats<Target>(all.shifts + k);
        });
    return;
  }
  float tops[kColumns], scales[kColumns];
  double totals[kColumns];
  softmax_columns::maxima(x, n, tops);
  softmax_columns::sum_exponentials(x, n, tops, y, totals);
  for (int k = 0; k < kColumns; ++k) scales[k] = static_cast<float>(1 / totals[k]);
  softmax_columns::store_values(
      y, n, [ =, &scales ](auto target, std::int64_t i, int k) __attribute__((always_inline)) {
        using Target = decltype(target);
        return simd::load_floats<Target>(y.row(i) + k) * simd::load_floats<Target>(scales + k);
      });
}

// gx = y (gy - sum(y gy)), or gy - e^y sum(gy) where y is the logarithm.
inline void softmax_grad_of_columns(const Columns<const float>& y, const Columns<const float>& gy,
                                    std::int64_t n, bool log, const Columns<float>& gx) {
  double totals[kColumns];
  float sums[kColumns];
  softmax_columns::sum_terms(
      n,
      [=](auto target, std::int64_t i, int k) __attribute__((always_inline)) {
        using Target = decltype(target);
        const auto g = simd::load_floats<Target>(gy.row(i) + k);
        return log ? g : g * simd::load_floats<Target>(y.row(i) + k);
      },
      totals);
  std::copy_n(totals, kColumns, sums);
  softmax_columns::store_values(
      gx, n, [ =, &sums ](auto target, std::int64_t i, int k) __attribute__((always_inline)) {
        using Target = decltype(target);
        const auto v = simd::load_floats<Target>(y.row(i) + k);
        const auto g = simd::load_floats<Target>(gy.row(i) + k);
        const auto sum = simd::load_floats<Target>(sums + k);
        if (log) return g - simd::exponential<Target>(v) * sum;
        return v * (g - sum);
      });
}

}  // namespace renga
