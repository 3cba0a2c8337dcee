// Softmax along an axis whose elements do not adjoin, or of short rows: of 64
// positions together, whose numbers are the lanes of vectors (softmax_row.h has
// that of a long row).
#pragma once

#include "ops/reduction/cpu/softmax_row.h"
#include "simd/transpose.h"

namespace renga {

// Numbers of 64 positions: those of a position are `step` apart, and positions
// adjoin.
inline constexpr std::int64_t kColumns = 64;
template <class Number>
struct Columns {
  Number* data;
  std::int64_t step;
  Number* row(std::int64_t i) const { return data + i * step; }
};

// Whether to compute n numbers of a position along `axis` of x by columns: not
// where so few positions adjoin that most columns would be empty. It does not
// depend on threads.
template <class T>
bool suits_columns(const Array& x, int axis) {
  constexpr std::int64_t kItem = sizeof(T), kShort = 96, kMost = 1 << 14, kFew = 8;
  const std::int64_t n = x.shape(axis), step = std::abs(x.strides()[axis]);
  if (step > kItem && step < kFew * kItem) return false;
  return n <= (step == kItem ? kShort : kMost) && x.size() >= kColumns * n;
}

// Calls body(first, count) for blocks of 64 positions that cover [0, m), of
// which the last may overlap the one before it, or for fewer positions if there
// are no more.
template <class Body>
void for_column_blocks(std::int64_t m, const Body& body) {
  if (m < kColumns) return body(std::int64_t{0}, m);
  for (std::int64_t j = 0; j < m; j += kColumns) body(std::min(j, m - kColumns), kColumns);
}

// Columns of an operand: in place where they are 64 adjoining numbers of the
// compute type, else in a buffer.
template <class T>
class ColumnBuffer {
  using C = Compute<T>;

 public:
  // Bytes from a number of a position to the next, and from a position to the
  // next.
  ColumnBuffer(std::int64_t step, std::int64_t position_step, std::int64_t n)
      : step_(step), position_step_(position_step), n_(n) {}

  Columns<C> at(std::byte* data, std::int64_t count) {
    if constexpr (std::is_same_v<T, C>) {
      if (in_place(count)) return {reinterpret_cast<T*>(data), step_ / static_cast<int>(sizeof(T))};
    }
    numbers_.resize(static_cast<std::size_t>(n_ * kColumns));
    return {numbers_.data(), kColumns};
  }
  Columns<const C> read(std::byte* data, std::int64_t count) {
    const Columns<C> to = at(data, count);
    if (in_place(count)) return {to.data, to.step};
    if (is_row_by_row()) {
      for (std::int64_t i = 0; i < n_; ++i) {
        fetch_next<0>(data + i * step_);
        simd::gather<T>(data + i * step_, position_step_, count, to.row(i));
      }
    } else if (is_of_squares(count)) {
      visit_squares<true>(data);
    } else {
      visit_positions(0, data, count,
                      [](C& number, T& element) { number = static_cast<C>(element); });
    }
    return {to.data, to.step};
  }
  void write(std::byte* data, std::int64_t count) {
    if (in_place(count)) return;
    if (is_row_by_row()) {
      for (std::int64_t i = 0; i < n_; ++i) {
        fetch_next<1>(data + i * step_);
        simd::scatter<T>(numbers_.data() + i * kColumns, data + i * step_, position_step_, count);
      }
    } else if (is_of_squares(count)) {
      visit_squares<false>(data);
    } else {
      visit_positions(0, data, count, [](C& number, T& element) { element = T(number); });
    }
  }

 private:
  bool in_place(std::int64_t count) const {
    return std::is_same_v<T, C> && position_step_ == sizeof(T) && count == kColumns;
  }
  // Fetches the columns after these, to be read or (is_written) written: the hardware does not see
  // that they follow.
  template <int is_written>
  void fetch_next(const std::byte* row) const {
    constexpr std::int64_t bytes = kColumns * sizeof(T), line = 64;
    if (position_step_ != sizeof(T)) return;
    for (std::int64_t k = 0; k < bytes; k += line) __builtin_prefetch(row + bytes + k, is_written);
  }
  // Memory is visited in its order.
  bool is_row_by_row() const { return step_ >= position_step_; }
  // Visits the numbers from `first` on of each position.
  template <class Visit>
  void visit_positions(std::int64_t first, std::byte* data, std::int64_t count,
                       const Visit& visit) {
    for (std::int64_t j = 0; j < count; ++j) {
      for (std::int64_t i = first; i < n_; ++i) {
        visit(numbers_[static_cast<std::size_t>(i * kColumns + j)],
              *reinterpret_cast<T*>(data + i * step_ + j * position_step_));
      }
    }
  }

  // Whether the numbers of each position adjoin, so that squares of them are transposed in
  // registers.
  bool is_of_squares(std::int64_t count) const {
    return std::is_same_v<C, float> && step_ == sizeof(T) && count == kColumns;
  }
  template <bool reads>
  void visit_squares(std::byte* data) {
    if constexpr (std::is_same_v<C, float>) {
      std::int64_t done = 0;
      simd::dispatch_for<T>([&](auto target) __attribute__((always_inline)) {
        constexpr std::int64_t width = decltype(target)::width;
        done = is_half<T> ? n_ / width * width : n_;
        for (std::int64_t j = 0; j < kColumns; j += width) {
          std::int64_t i = 0;
          for (; i + width <= n_; i += width) visit_square<decltype(target), reads>(data, i, j);
          if (i < done) visit_square<decltype(target), reads, false>(data, i, j);
        }
      });
      visit_positions(done, data, kColumns, [](C& number, T& element) {
        reads ? void(number = static_cast<C>(element)) : void(element = T(number));
      });
    }
  }
  // Numbers from i on of positions from j on; those of the last square may be fewer.
  template <class Target, bool reads, bool is_whole = true>
  [[gnu::always_inline]] void visit_square(std::byte* data, std::int64_t i, std::int64_t j) {
    using V = simd::Vector<Target, float>;
    const int count = is_whole ? V::width : static_cast<int>(n_ - i);
    const auto elements = [ =, this ](int k) __attribute__((always_inline)) {
      return reinterpret_cast<T*>(data + (j + k) * position_step_) + i;
    };
    float* const columns = numbers_.data() + i * kColumns + j;
    simd::Floats<Target> rows[V::width] = {};
#pragma GCC unroll 16
    for (int k = 0; k < V::width; ++k) {
      if constexpr (!reads) {
        if (k < count) rows[k] = V::load(columns + k * kColumns);
      } else if constexpr (is_whole) {
        rows[k] = V::load(elements(k));
      } else if constexpr (!is_half<T>) {
        rows[k] = simd::load_first<Target>(elements(k), count);
      }
    }
    simd::transpose<Target>(rows);
#pragma GCC unroll 16
    for (int k = 0; k < V::width; ++k) {
      if constexpr (reads) {
        if (k < count) V::store(rows[k], columns + k * kColumns);
      } else if constexpr (is_whole) {
        V::store(rows[k], elements(k));
      } else if constexpr (!is_half<T>) {
        simd::store_first<Target>(rows[k], elements(k), count);
      }
    }
  }

  std::int64_t step_, position_step_, n_;
  std::vector<C> numbers_;
};

namespace softmax_columns {

// The largest number of each position; NaN is not the maximum, it appears in
// the sum.
template <class C>
void maxima(const Columns<const C>& x, std::int64_t n, C* tops) {
  simd::dispatch_for<C>([&](auto target) __attribute__((always_inline)) {
    using V = simd::Vector<decltype(target), C>;
    constexpr int width = V::width, count = kColumns / width;
    V top[count];
    for (int k = 0; k < count; ++k) top[k] = V(V::load(x.row(0) + k * width));
    for (std::int64_t i = 1; i < n; ++i) {
#pragma GCC unroll 8
      for (int k = 0; k < count; ++k) top[k] = max(V(V::load(x.row(i) + k * width)), top[k]);
    }
    for (int k = 0; k < count; ++k) V::store(top[k], tops + k * width);
  });
}

// Adds term(V{}, i, k), vectors of numbers for columns from k on, over all i.
// So many numbers are summed up in double.
template <class C, class Term>
void sum_terms(std::int64_t n, const Term& term, double* totals) {
  std::fill_n(totals, kColumns, 0.0);
  simd::dispatch_for<C>([&](auto target) __attribute__((always_inline)) {
    using V = simd::Vector<decltype(target), C>;
    constexpr int width = V::width, count = kColumns / width;
    constexpr std::int64_t kRows = 32;
    for (std::int64_t begin = 0; begin < n; begin += kRows) {
      V sum[count];
      for (V& each : sum) each = V(C(0));
      for (std::int64_t i = begin; i < std::min(n, begin + kRows); ++i) {
#pragma GCC unroll 8
        for (int k = 0; k < count; ++k) sum[k] = sum[k] + term(V{}, i, k * width);
      }
      C sums[kColumns];
      for (int k = 0; k < count; ++k) V::store(sum[k], sums + k * width);
      for (int k = 0; k < kColumns; ++k) totals[k] += static_cast<double>(sums[k]);
    }
  });
}

// Stores value(V{}, i, k) into y.
template <class C, class Value>
void store_values(const Columns<C>& y, std::int64_t n, const Value& value) {
  simd::dispatch_for<C>([&](auto target) __attribute__((always_inline)) {
    using V = simd::Vector<decltype(target), C>;
    for (std::int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 8
      for (int k = 0; k < kColumns; k += V::width) V::store(value(V{}, i, k), y.row(i) + k);
    }
  });
}

// Terms e^(x - top), which are stored in `terms` if it has data.
template <class C>
void sum_exponentials(const Columns<const C>& x, std::int64_t n, const C* tops,
                      const Columns<C>& terms, double* totals) {
  sum_terms<C>(
      n,
      [=]<class V>(V, std::int64_t i, int k) __attribute__((always_inline)) {
        const V term = exp_of_negative(V(V::load(x.row(i) + k)) - V(V::load(tops + k)));
        if (terms.data != nullptr) V::store(term, terms.row(i) + k);
        return term;
      },
      totals);
}

}  // namespace softmax_columns

// log softmax(x) = (x - top) - shift for each position (softmax_row.h).
template <class C>
struct ColumnNormalizers {
  C tops[kColumns], shifts[kColumns];
};

template <class C>
ColumnNormalizers<C> column_normalizers(const Columns<const C>& x, std::int64_t n) {
  ColumnNormalizers<C> all;
  double totals[kColumns];
  softmax_columns::maxima(x, n, all.tops);
  softmax_columns::sum_exponentials(x, n, all.tops, {nullptr, 0}, totals);
  const simd::Rows<double> logarithms{totals};
  const simd::Rows<const double> sums{totals};
  simd::map_vectors(
      logarithms, 1, kColumns, [](const auto& v) __attribute__((always_inline)) { return log(v); },
      sums);
  std::copy_n(totals, kColumns, all.shifts);
  return all;
}

// y = e^((x - top) - shift) factor, with a factor for each position.
template <class C>
void column_exponentials(const Columns<const C>& x, std::int64_t n, const ColumnNormalizers<C>& all,
                         const C* factors, const Columns<C>& y) {
  softmax_columns::store_values(
      y, n, [ =, &all ]<class V>(V, std::int64_t i, int k) __attribute__((always_inline)) {
        const V v = V(V::load(x.row(i) + k)) - V(V::load(all.tops + k));
        return exp_of_negative(v - V(V::load(all.shifts + k))) * V(V::load(factors + k));
      });
}

// y = (x - top) - shift.
template <class C>
void column_logarithms(const Columns<const C>& x, std::int64_t n, const C* tops, const C* shifts,
                       const Columns<C>& y) {
  softmax_columns::store_values(
      y, n, [=]<class V>(V, std::int64_t i, int k) __attribute__((always_inline)) {
        return (V(V::load(x.row(i) + k)) - V(V::load(tops + k))) - V(V::load(shifts + k));
      });
}

// y *= scale.
template <class C>
void scale_columns(const Columns<C>& y, std::int64_t n, const C* scales) {
  softmax_columns::store_values(
      y, n, [=]<class V>(V, std::int64_t i, int k) __attribute__((always_inline)) {
        return V(V::load(y.row(i) + k)) * V(V::load(scales + k));
      });
}

// y = softmax(x), or its logarithm.
template <class C>
void softmax_of_columns(const Columns<const C>& x, std::int64_t n, bool log, const Columns<C>& y) {
  if (log) {
    const ColumnNormalizers<C> all = column_normalizers(x, n);
    return column_logarithms(x, n, all.tops, all.shifts, y);
  }
  C tops[kColumns], scales[kColumns];
  double totals[kColumns];
  softmax_columns::maxima(x, n, tops);
  softmax_columns::sum_exponentials(x, n, tops, y, totals);
  for (int k = 0; k < kColumns; ++k) scales[k] = static_cast<C>(1 / totals[k]);
  scale_columns(y, n, scales);
}

// The sums of y gy, or of gy where y is the logarithm.
template <class C>
void column_grad_sums(const Columns<const C>& y, const Columns<const C>& gy, std::int64_t n,
                      bool log, double* totals) {
  softmax_columns::sum_terms<C>(
      n,
      [=]<class V>(V, std::int64_t i, int k) __attribute__((always_inline)) {
        const V g(V::load(gy.row(i) + k));
        return log ? g : g * V(V::load(y.row(i) + k));
      },
      totals);
}

// gx = y (gy - sum), or gy - e^y sum where y is the logarithm.
template <class C>
void column_grads(const Columns<const C>& y, const Columns<const C>& gy, std::int64_t n, bool log,
                  const C* sums, const Columns<C>& gx) {
  softmax_columns::store_values(
      gx, n, [=]<class V>(V, std::int64_t i, int k) __attribute__((always_inline)) {
        const V v(V::load(y.row(i) + k)), g(V::load(gy.row(i) + k)), sum(V::load(sums + k));
        return log ? g - exp_of_negative(v) * sum : v * (g - sum);
      });
}

template <class C>
void softmax_grad_of_columns(const Columns<const C>& y, const Columns<const C>& gy, std::int64_t n,
                             bool log, const Columns<C>& gx) {
  double totals[kColumns];
  C sums[kColumns];
  column_grad_sums(y, gy, n, log, totals);
  std::copy_n(totals, kColumns, sums);
  column_grads(y, gy, n, log, sums, gx);
}

}  // namespace renga
