// Rows are normalized one at a time, in cache. Sums over rows are of blocks of rows, which follow
// from the shape alone.
#include "ops/normalization/layer.h"

#include <cmath>

#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "devices/rounding.h"
#include "simd/vector.h"

namespace renga {
namespace {

// Calls body(Vector{}, i) and, for the last elements, body(Scalar{}, i).
template <class Target, class S, class Body>
[[gnu::always_inline]] inline void for_each(std::int64_t begin, std::int64_t end,
                                            const Body& body) {
  using L = simd::Vector<Target, S>;
  std::int64_t i = begin;
  for (; i + L::width <= end; i += L::width) body(L{}, i);
  for (; i < end; ++i) body(simd::Scalar<S>{}, i);
}

struct Sums {
  double first = 0, second = 0;
};

// The sums of two numbers per element, which term(l, i, first, second) adds. Short sums of floats
// are added in float64.
template <class Target, class S, class Term>
[[gnu::always_inline]] inline Sums sum_row(std::int64_t n, const Term& term) {
  using L = simd::Vector<Target, S>;
  constexpr std::int64_t block = 64 * L::width;
  Sums sums;
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = std::min(n, begin + block);
    // Several vectors of sums, as each addition waits for the one before.
    typename L::V first[4]{}, second[4]{};
    S first_rest = 0, second_rest = 0;
    std::int64_t i = begin;
    for (; i + 4 * L::width <= end; i += 4 * L::width) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) term(L{}, i + k * L::width, first[k], second[k]);
    }
    for (; i + L::width <= end; i += L::width) term(L{}, i, first[0], second[0]);
    for (; i < end; ++i) term(simd::Scalar<S>{}, i, first_rest, second_rest);
    const auto total = [](const auto& v) __attribute__((always_inline)) {
      return static_cast<double>(L::sum((v[0] + v[1]) + (v[2] + v[3])));
    };
    sums.first += total(first) + static_cast<double>(first_rest);
    sums.second += total(second) + static_cast<double>(second_rest);
  }
  return sums;
}

template <class T, class S>
struct Kernel {
  std::int64_t rows, columns;
  const T* x;
  const S *gamma, *beta;  // beta is null for RMS normalization
  double eps;

  explicit Kernel(const RowNormalization& normalization)
      : rows(normalization.x.shape(0)),
        columns(normalization.x.shape(1)),
        x(normalization.x.as<const T>()),
        gamma(normalization.gamma.as<const S>()),
        beta(normalization.beta.defined() ? normalization.beta.as<const S>() : nullptr),
        eps(normalization.eps) {}

  template <class Target>
  [[gnu::always_inline]] void normalize_row(std::int64_t r, T* y, S& mean, S& inv_std) const {
    const T* const row = x + r * columns;
    const double n = static_cast<double>(columns);
    mean = 0;
    if (beta) {
      mean = static_cast<S>(
          sum_row<Target, S>(
              columns, [=](auto l, std::int64_t i, auto& sum, auto&)
                           __attribute__((always_inline)) { sum += l.load(row + i); })
              .first /
          n);
    }
    const S centre = mean;
    const double squares =
        sum_row<Target, S>(
            columns,
            [=](auto l, std::int64_t i, auto& sum, auto&) __attribute__((always_inline)) {
              const auto v = l.load(row + i) - centre;
              sum += v * v;
            })
            .first;
    inv_std = static_cast<S>(1 / std::sqrt(squares / n + eps));
    const S scale = inv_std;
    T* const to = y + r * columns;
    for_each<Target, S>(
        0, columns, [ =, this ](auto l, std::int64_t i) __attribute__((always_inline)) {
          auto v = (l.load(row + i) - centre) * scale * l.load(gamma + i);
          if (beta) v += l.load(beta + i);
          l.store(v, to + i);
        });
  }

  // Adds to ggamma and gbeta.
  template <class Target>
  [[gnu::always_inline]] void grad_row(std::int64_t r, S mean, S inv_std, const T* gys, T* gxs,
                                       S* ggamma, S* gbeta) const {
    const T *const row = x + r * columns, *const gy = gys + r * columns;
    const Sums sums = sum_row<Target, S>(
        columns, [ =, this ](auto l, std::int64_t i, auto& sum_g, auto& sum_gx)
                     __attribute__((always_inline)) {
                       const auto normalized = (l.load(row + i) - mean) * inv_std;
                       const auto g = l.load(gy + i);
                       l.store(l.load(ggamma + i) + g * normalized, ggamma + i);
                       if (beta) l.store(l.load(gbeta + i) + g, gbeta + i);
                       const auto scaled = g * l.load(gamma + i);
                       sum_g += scaled;
                       sum_gx += scaled * normalized;
                     });
    const double n = static_cast<double>(columns);
    const S shift = beta ? static_cast<S>(sums.first / n) : S(0);
    const S slope = static_cast<S>(sums.second / n);
    T* const gx = gxs + r * columns;
    for_each<Target, S>(
        0, columns, [ =, this ](auto l, std::int64_t i) __attribute__((always_inline)) {
          const auto normalized = (l.load(row + i) - mean) * inv_std;
          const auto g = l.load(gy + i) * l.load(gamma + i);
          l.store((g - shift - normalized * slope) * inv_std, gx + i);
        });
  }
};

template <class Visit>
void visit_types(Dtype dtype, const Visit& visit) {
  visit_dtype(dtype, [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) visit(Type<T>{}, Type<Compute<T>>{});
  });
}

void normalize_cpu(const RowNormalization& normalization, const Array& y, const Array& mean,
                   const Array& inv_std) {
  const GilRelease work(y.size());
  visit_types(y.dtype(), [&]<class T, class S>(Type<T>, Type<S>) {
    const Kernel<T, S> kernel(normalization);
    parallel_for(kernel.rows, kernel.columns, [&](std::int64_t begin, std::int64_t end) {
      simd::dispatch_for<T>([&](auto target) __attribute__((always_inline)) {
        for (std::int64_t r = begin; r < end; ++r) {
          kernel.template normalize_row<decltype(target)>(r, y.as<T>(), mean.as<S>()[r],
                                                          inv_std.as<S>()[r]);
        }
      });
    });
  });
}

// Sums of blocks, (blocks, columns), added up to one.
template <class S>
void add_blocks(const Array& sums, const Array& total) {
  const std::int64_t blocks = sums.shape(0), columns = sums.shape(1);
  parallel_for(columns, blocks, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      double sum = 0;
      for (std::int64_t b = 0; b < blocks; ++b) {
        sum += static_cast<double>(sums.as<S>()[b * columns + c]);
      }
      total.as<S>()[c] = static_cast<S>(sum);
    }
  });
}

void gradients_cpu(const RowNormalization& normalization, const Array& mean, const Array& inv_std,
                   const Array& gy, const Array& gx, const Array& ggamma, const Array& gbeta) {
  const GilRelease work(gx.size());
  visit_types(gx.dtype(), [&]<class T, class S>(Type<T>, Type<S>) {
    const Kernel<T, S> kernel(normalization);
    const std::int64_t rows = kernel.rows, columns = kernel.columns;
    constexpr std::int64_t most_blocks = 64, least_rows = 16;
    const std::int64_t each = std::max(least_rows, divide_up(rows, most_blocks));
    const std::int64_t blocks = divide_up(rows, each);
    const Array gammas = zeros({blocks, columns}, ggamma.dtype());
    const Array betas = kernel.beta ? zeros({blocks, columns}, ggamma.dtype()) : Array();
    parallel_for(blocks, each * columns, [&](std::int64_t begin, std::int64_t end) {
      simd::dispatch_for<T>([&](auto target) __attribute__((always_inline)) {
        for (std::int64_t b = begin; b < end; ++b) {
          S* const gamma_sums = gammas.as<S>() + b * columns;
          S* const beta_sums = kernel.beta ? betas.as<S>() + b * columns : nullptr;
          for (std::int64_t r = b * each; r < std::min(rows, (b + 1) * each); ++r) {
            kernel.template grad_row<decltype(target)>(r, mean.as<const S>()[r],
                                                       inv_std.as<const S>()[r], gy.as<const T>(),
                                                       gx.as<T>(), gamma_sums, beta_sums);
          }
        }
      });
    });
    add_blocks<S>(gammas, ggamma);
    if (kernel.beta) add_blocks<S>(betas, gbeta);
  });
}

// Calls body(target, row) for the rows of x with a target's vectors.
template <class T, class Body>
void for_each_row(const Array& x, const Body& body) {
  parallel_for(x.shape(0), x.shape(1), [&](std::int64_t begin, std::int64_t end) {
    simd::dispatch_for<T>([&](auto target) __attribute__((always_inline)) {
      for (std::int64_t r = begin; r < end; ++r) body(target, r);
    });
  });
}

void unit_rows_cpu(const Array& x, double eps, const Array& y, const Array& lengths) {
  const GilRelease work(x.size());
  const std::int64_t columns = x.shape(1);
  visit_types(x.dtype(), [&]<class T, class S>(Type<T>, Type<S>) {
    for_each_row<T>(
        x, [&](auto target, std::int64_t r) __attribute__((always_inline)) {
          using Target = decltype(target);
          const T* const row = x.as<const T>() + r * columns;
          T* const to = y.as<T>() + r * columns;
          const double squares =
              sum_row<Target, S>(
                  columns,
                  [=](auto l, std::int64_t i, auto& sum, auto&) __attribute__((always_inline)) {
                    const auto v = l.load(row + i);
                    sum += v * v;
                  })
                  .first;
          const S length = static_cast<S>(std::sqrt(squares));
          const S scale = 1 / (length + static_cast<S>(eps));
          lengths.as<S>()[r] = length;
          for_each<Target, S>(
              0, columns, [=](auto l, std::int64_t i) __attribute__((always_inline)) {
                l.store(l.load(row + i) * scale, to + i);
              });
        });
  });
}

void unit_rows_grad_cpu(const Array& x, double eps, const Array& lengths, const Array& gy,
                        const Array& gx) {
  const GilRelease work(x.size());
  const std::int64_t columns = x.shape(1);
  visit_types(x.dtype(), [&]<class T, class S>(Type<T>, Type<S>) {
    for_each_row<T>(
        x, [&](auto target, std::int64_t r) __attribute__((always_inline)) {
          using Target = decltype(target);
          const T *const row = x.as<const T>() + r * columns, *const g =
                                                                  gy.as<const T>() + r * columns;
          T* const to = gx.as<T>() + r * columns;
          const S length = lengths.as<const S>()[r], scale = 1 / (length + static_cast<S>(eps));
          const double dot =
              sum_row<Target, S>(
                  columns, [=](auto l, std::int64_t i, auto& sum, auto&) __attribute__((
                               always_inline)) { sum += l.load(row + i) * l.load(g + i); })
                  .first;
          // The length of zeros is a constant.
          const S along = length > 0 ? static_cast<S>(dot) * scale / length : S(0);
          for_each<Target, S>(
              0, columns, [=](auto l, std::int64_t i) __attribute__((always_inline)) {
                l.store((l.load(g + i) - l.load(row + i) * along) * scale, to + i);
              });
        });
  });
}

[[maybe_unused]] const bool registered = row_normalization_kernels.add(
    0, {normalize_cpu, gradients_cpu, unit_rows_cpu, unit_rows_grad_cpu});

}  // namespace
}  // namespace renga
