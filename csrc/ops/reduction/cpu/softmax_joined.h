// Softmax along a long axis, of a few positions that adjoin: rows of them are joined to longer
// ones, whose numbers fill whole blocks of columns (softmax_columns.h). Each block has results of
// its own, which are put together for each position.
#pragma once

#include <functional>
#include <numeric>
#include <span>

#include "devices/parallel.h"
#include "ops/reduction/cpu/softmax_columns.h"

namespace renga {

// Whether softmax along `axis` of these arrays is computed so: the axis is in none of the other
// ways, there is much more than one joined row, and the elements of each array adjoin in the same
// order. It does not depend on threads.
template <class T>
bool joins_rows(int axis, std::span<const Array* const> arrays) {
  const Array& x = *arrays[0];
  const std::int64_t m = x.strides()[axis] / static_cast<std::int64_t>(sizeof(T));
  return std::is_same_v<T, Compute<T>> && !suits_columns<T>(x, axis) && m > 1 && m < kColumns &&
         x.shape(axis) * m >= 4 * std::lcm(m, kColumns) &&
         transpose_view(x, memory_order(x)).is_contiguous() &&
         std::ranges::all_of(arrays, [&](const Array* a) { return same_layout(*a, x); });
}

// n rows of m numbers as longer rows of `width`, and the rest of them, extended to one row.
struct JoinedRows {
  JoinedRows(std::int64_t n, std::int64_t m)
      : m(m), width(std::lcm(m, kColumns)), rows(n * m / width), rest(n * m % width) {}

  // Calls body(c) for each block of columns, of which the first is c.
  template <class Body>
  void for_each_block(const Body& body) const {
    parallel_for(width / kColumns, 10 * kColumns * rows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) body(b * kColumns);
    });
  }

  // Puts together the numbers of columns that belong to the same position.
  template <class Number, class Fold>
  void combine(std::vector<Number>& columns, const Fold& fold) const {
    const auto at = [&](std::int64_t k) -> Number& { return columns[static_cast<std::size_t>(k)]; };
    for (std::int64_t k = m; k < width; ++k) at(k % m) = fold(at(k % m), at(k));
    for (std::int64_t k = m; k < width; ++k) at(k) = at(k % m);
  }

  std::int64_t m, width, rows, rest;
};

// Calls body(first) with the first element of the rows of each place on the other axes: in
// parallel, unless the blocks of a place are more to share.
template <class Body>
void for_each_place(std::int64_t n, std::int64_t m, std::int64_t places, const Body& body) {
  const auto visit = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) body(k * n * m);
  };
  if (places < JoinedRows(n, m).width / kColumns) return visit(0, places);
  parallel_for(places, 10 * n * m, visit);
}

// An operand by blocks: its joined rows in place, and the last one in a buffer.
template <class C>
class JoinedOperand {
 public:
  JoinedOperand(const JoinedRows& joined, C* data, std::remove_const_t<C> filling = 0)
      : joined_(joined), data_(data), last_(static_cast<std::size_t>(joined.width), filling) {
    std::copy_n(data + joined.rows * joined.width, joined.rest, last_.data());
  }
  Columns<C> whole(std::int64_t c) const { return {data_ + c, joined_.width}; }
  Columns<C> last(std::int64_t c) { return {last_.data() + c, joined_.width}; }
  void write_last() const {
    std::copy_n(last_.data(), joined_.rest, data_ + joined_.rows * joined_.width);
  }

 private:
  const JoinedRows& joined_;
  C* data_;
  std::vector<std::remove_const_t<C>> last_;
};

// y = softmax(x) along the n rows of m numbers, or its logarithm.
template <class C>
void softmax_of_joined_rows(const C* x, std::int64_t n, std::int64_t m, bool log, C* y) {
  const JoinedRows joined(n, m);
  JoinedOperand<const C> from(joined, x, softmax_rows::kNothing<C>);
  JoinedOperand<C> to(joined, y);
  const auto width = static_cast<std::size_t>(joined.width);
  std::vector<C> tops(width), factors(width);
  std::vector<double> totals(width);
  const auto larger = [](C a, C b) { return b > a ? b : a; };
  joined.for_each_block([&](std::int64_t c) {
    C last[kColumns];
    softmax_columns::maxima(from.whole(c), joined.rows, tops.data() + c);
    softmax_columns::maxima(from.last(c), 1, last);
    for (std::int64_t k = 0; k < kColumns; ++k)
      tops.data()[c + k] = larger(last[k], tops.data()[c + k]);
  });
  joined.combine(tops, larger);
  joined.for_each_block([&](std::int64_t c) {
    double last[kColumns];
    const C* const top = tops.data() + c;
    const auto terms = [log](const Columns<C>& columns) {
      return log ? Columns<C>{nullptr, 0} : columns;
    };
    softmax_columns::sum_exponentials(from.whole(c), joined.rows, top, terms(to.whole(c)),
                                      totals.data() + c);
    softmax_columns::sum_exponentials(from.last(c), 1, top, terms(to.last(c)), last);
    for (std::int64_t k = 0; k < kColumns; ++k) totals.data()[c + k] += last[k];
  });
  joined.combine(totals, std::plus<double>());
  std::ranges::transform(totals, factors.begin(), [log](double total) {
    return static_cast<C>(log ? std::log(total) : 1 / total);
  });
  joined.for_each_block([&](std::int64_t c) {
    const C* const factor = factors.data() + c;
    if (log) {
      column_logarithms(from.whole(c), joined.rows, tops.data() + c, factor, to.whole(c));
      column_logarithms(from.last(c), 1, tops.data() + c, factor, to.last(c));
    } else {
      scale_columns(to.whole(c), joined.rows, factor);
      scale_columns(to.last(c), 1, factor);
    }
  });
  to.write_last();
}

template <class C>
void softmax_grad_of_joined_rows(const C* y, const C* gy, std::int64_t n, std::int64_t m, bool log,
                                 C* gx) {
  const JoinedRows joined(n, m);
  JoinedOperand<const C> from(joined, y), grad(joined, gy);
  JoinedOperand<C> to(joined, gx);
  std::vector<double> totals(static_cast<std::size_t>(joined.width));
  joined.for_each_block([&](std::int64_t c) {
    double last[kColumns];
    column_grad_sums(from.whole(c), grad.whole(c), joined.rows, log, totals.data() + c);
    column_grad_sums(from.last(c), grad.last(c), 1, log, last);
    for (std::int64_t k = 0; k < kColumns; ++k) totals.data()[c + k] += last[k];
  });
  joined.combine(totals, std::plus<double>());
  const std::vector<C> sums(totals.begin(), totals.end());
  joined.for_each_block([&](std::int64_t c) {
    column_grads(from.whole(c), grad.whole(c), joined.rows, log, sums.data() + c, to.whole(c));
    column_grads(from.last(c), grad.last(c), 1, log, sums.data() + c, to.last(c));
  });
  to.write_last();
}

}  // namespace renga
