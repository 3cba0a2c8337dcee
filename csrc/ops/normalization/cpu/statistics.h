// Means and variances of channels, and the sums that gradients need.
//
// Blocks of elements are reduced in the type of the statistics (channel_reduction.h). A variance is
// summed around the mean of its block's first elements, and blocks are merged with their distances
// from the common mean (Chan, Golub and LeVeque 1979): nothing cancels, however far from 0 the
// elements are.
#pragma once

#include "ops/normalization/cpu/channel_reduction.h"
#include "ops/normalization/fused_elements.h"
#include "simd/vector.h"

namespace renga::normalized {

// Sums two numbers per element. term(l, i, channel, first, second) adds the numbers of a vector of
// elements from i on to the sums, and may round to type Rounded. Over rows, for a strip of channels
// whose sums stay in registers; meanwhile, term.prefetch(i), once a line of the caches, fetches as
// many rows after these into the second-level cache, as processors do not foresee strips:
template <class L, int vectors, class Term, class S>
[[gnu::always_inline]] inline void sum_strip(L l, std::int64_t rows, std::int64_t step,
                                             std::int64_t c, const Term& term, S* first,
                                             S* second) {
  constexpr std::size_t bytes = L::width * sizeof(typename Term::Number), line = 64;
  constexpr int vectors_of_line = std::max<int>(1, line / bytes);
  typename L::V a[vectors] = {}, b[vectors] = {};
  for (std::int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int k = 0; k < vectors; ++k) {
      const std::int64_t at = c + k * L::width;
      if (k % vectors_of_line == 0) term.prefetch((rows + r) * step + at);
      term(l, r * step + at, AdjoiningChannels{at}, a[k], b[k]);
    }
  }
  for (int k = 0; k < vectors; ++k) {
    L::store(a[k], first + c + k * L::width);
    L::store(b[k], second + c + k * L::width);
  }
}

template <class Rounded, class S, class Term>
void sum_rows(std::int64_t rows, std::int64_t step, std::int64_t width, const Term& term, S* first,
              S* second) {
  simd::dispatch_for<Rounded>([=](auto target) __attribute__((always_inline)) {
    using L = simd::Vector<decltype(target), S>;
    std::int64_t c = 0;
    for (; c + 4 * L::width <= width; c += 4 * L::width) {
      sum_strip<L, 4>(L{}, rows, step, c, term, first, second);
    }
    simd::for_each_vector<decltype(target), S>(
        c, width, [=](auto l, std::int64_t at) __attribute__((always_inline)) {
          sum_strip<decltype(l), 1>(l, rows, step, at, term, first, second);
        });
  });
}

// Over n adjoining elements of one channel:
template <class Rounded, class S, class Term>
void sum_run(std::int64_t n, std::int64_t c, const Term& term, S& first, S& second) {
  simd::dispatch_for<Rounded>([ =, &first, &second ](auto target) __attribute__((always_inline)) {
    using L = simd::Vector<decltype(target), S>;
    const OneChannel channel{c};
    typename L::V a[4] = {}, b[4] = {};
    std::int64_t i = 0;
    for (; i + 4 * L::width <= n; i += 4 * L::width) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) term(L{}, i + k * L::width, channel, a[k], b[k]);
    }
    for (; i + L::width <= n; i += L::width) term(L{}, i, channel, a[0], b[0]);
    first = L::sum((a[0] + a[1]) + (a[2] + a[3]));
    second = L::sum((b[0] + b[1]) + (b[2] + b[3]));
    for (; i < n; ++i) term(simd::Scalar<S>{}, i, channel, first, second);
  });
}

// The sum of elements.
template <class T>
struct PlainSum {
  using Number = T;
  const T* x;
  template <class L, class Channel>
  [[gnu::always_inline]] void operator()(L, std::int64_t i, Channel, typename L::V& sum,
                                         typename L::V&) const {
    sum += L::load(x + i);
  }
  [[gnu::always_inline]] void prefetch(std::int64_t) const {}  // of few rows
};

// The sums of differences from a pivot per channel, and of their squares.
template <class T, class S>
struct SquaresAround {
  using Number = T;
  const T* x;
  const S* pivot;
  template <class L, class Channel>
  [[gnu::always_inline]] void operator()(L l, std::int64_t i, Channel channel,
                                         typename L::V& differences, typename L::V& squares) const {
    const typename L::V d = L::load(x + i) - channel.get(l, pivot);
    differences += d;
    squares += d * d;
  }
  [[gnu::always_inline]] void prefetch(std::int64_t i) const { __builtin_prefetch(x + i, 0, 2); }
};

// The sums of g and of g (x - mean).
template <class Typed, class T>
struct GradientSums {
  using Number = T;
  Typed normalization;
  const T* gy;
  template <class L, class Channel>
  [[gnu::always_inline]] void operator()(L l, std::int64_t i, Channel channel, typename L::V& sum_g,
                                         typename L::V& sum_g_x) const {
    const typename L::V d = normalization.centred(l, i, channel);
    const typename L::V g = normalization.gradient(l, i, d, channel, gy);
    sum_g += g;
    sum_g_x += g * d;
  }
  [[gnu::always_inline]] void prefetch(std::int64_t i) const {
    __builtin_prefetch(normalization.x + i, 0, 2);
    __builtin_prefetch(gy + i, 0, 2);
  }
};

// The first elements of a block. Their mean is the pivot from which differences are taken.
constexpr std::int64_t kPivotRows = 16, kPivotElements = 256;

// The mean and the sum of squared differences from it, of n elements, from the sums of differences
// from a pivot and of their squares.
template <class S>
void set_moments(std::int64_t n, S pivot, S differences, S squares, double& mean,
                 double& sum_squares) {
  const double shift = static_cast<double>(differences) / static_cast<double>(n);
  mean = static_cast<double>(pivot) + shift;
  sum_squares =
      std::max(0.0, static_cast<double>(squares) - shift * static_cast<double>(differences));
}

template <class T, class S>
void row_moments(const T* x, std::int64_t step, std::int64_t rows, std::int64_t width, double* mean,
                 double* squares) {
  S pivot[kTile], differences[kTile], squared[kTile];
  const std::int64_t first = std::min(rows, kPivotRows);
  sum_rows<S>(first, step, width, PlainSum<T>{x}, pivot, squared);
  for (std::int64_t c = 0; c < width; ++c) pivot[c] /= static_cast<S>(first);
  sum_rows<S>(rows, step, width, SquaresAround<T, S>{x, pivot}, differences, squared);
  for (std::int64_t c = 0; c < width; ++c) {
    set_moments(rows, pivot[c], differences[c], squared[c], mean[c], squares[c]);
  }
}

template <class T, class S>
void run_moments(const T* x, std::int64_t n, double& mean, double& squares) {
  S pivot, differences, squared;
  const std::int64_t first = std::min(n, kPivotElements);
  sum_run<S>(first, 0, PlainSum<T>{x}, pivot, squared);
  pivot /= static_cast<S>(first);
  sum_run<S>(n, 0, SquaresAround<T, S>{x, &pivot}, differences, squared);
  set_moments(n, pivot, differences, squared, mean, squares);
}

template <class T, class S>
void moments(const T* x, const ChannelLayout& layout, S* mean, S* var) {
  const double m = static_cast<double>(std::max<std::int64_t>(1, layout.count()));
  const auto finish = [&](std::int64_t c, double average, double squares) {
    mean[c] = static_cast<S>(average);
    var[c] = static_cast<S>(squares / m);
  };
  if (layout.inner > 1) {
    const auto block = [&](std::int64_t at, std::int64_t n, std::int64_t, double& first,
                           double& second) { run_moments<T, S>(x + at, n, first, second); };
    return reduce_planes(layout, merge_moments, block, finish);
  }
  const auto block = [&](std::int64_t row, std::int64_t rows, std::int64_t at, std::int64_t width,
                         double* first, double* second) {
    row_moments<T, S>(x + row * layout.channels + at, layout.channels, rows, width, first, second);
  };
  reduce_rows(layout, merge_moments, block, finish);
}

template <class Typed, class T, class S>
void gradient_sums(const Typed& normalization, const T* gy, const ChannelLayout& layout, S* sum_g,
                   S* sum_g_x) {
  const auto finish = [&](std::int64_t c, double first, double second) {
    sum_g[c] = static_cast<S>(first);
    sum_g_x[c] = static_cast<S>(second);
  };
  if (layout.inner > 1) {
    const auto block = [&](std::int64_t at, std::int64_t n, std::int64_t c, double& first,
                           double& second) {
      S sum, product;
      sum_run<T>(n, c, GradientSums<Typed, T>{normalization.from(at, 0), gy + at}, sum, product);
      first = static_cast<double>(sum);
      second = static_cast<double>(product);
    };
    return reduce_planes(layout, merge_sums, block, finish);
  }
  const auto block = [&](std::int64_t row, std::int64_t rows, std::int64_t at, std::int64_t width,
                         double* first, double* second) {
    S sum[kTile], product[kTile];
    const std::int64_t top = row * layout.channels + at;
    sum_rows<T>(rows, layout.channels, width,
                GradientSums<Typed, T>{normalization.from(top, at), gy + top}, sum, product);
    std::copy_n(sum, width, first);
    std::copy_n(product, width, second);
  };
  reduce_rows(layout, merge_sums, block, finish);
}

}  // namespace renga::normalized
