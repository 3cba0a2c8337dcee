#include "ops/reduction/reduction.h"

#include <array>
#include <vector>

#include "devices/gil_release.h"
#include "devices/rounding.h"
#include "ops/reduction/reducers.h"
#include "tensor/convert.h"
#include "tensor/strided_loop.h"

namespace renga {
namespace {

using reducers::comparable, reducers::is_nan;

template <class T, class Value>
Value load(const std::byte* p) {
  return static_cast<Value>(static_cast<Compute<T>>(*reinterpret_cast<const T*>(p)));
}

// Folds a run of elements. Sixteen partial results let the compiler vectorize, and are more exact
// than a single running sum.
template <class T, class R>
typename R::Value fold_run(const std::byte* x, std::int64_t step, std::int64_t n) {
  using Value = typename R::Value;
  constexpr int kPartials = 16;
  Value partials[kPartials];
  std::fill_n(partials, kPartials, R::start);
  std::int64_t i = 0;
  if (step == sizeof(T)) {
    for (; i + kPartials <= n; i += kPartials) {
      for (int l = 0; l < kPartials; ++l) {
        partials[l] =
            R::fold(partials[l], load<T, Value>(x + (i + l) * static_cast<int>(sizeof(T))));
      }
    }
  }
  for (; i < n; ++i) partials[0] = R::fold(partials[0], load<T, Value>(x + i * step));
  for (int l = 1; l < kPartials; ++l) partials[0] = R::fold(partials[0], partials[l]);
  return partials[0];
}

// The reduced axes of x as a loop of their own.
StridedLoop<1> reduced_loop(const Array& x, const Axes& axes) {
  Shape shape;
  Strides strides;
  for (std::int64_t a : axes) {
    shape.push_back(x.shape(static_cast<int>(a)));
    strides.push_back(x.strides()[static_cast<int>(a)]);
  }
  const Array view(x.storage(), x.data(), shape, strides, x.dtype());
  return make_loop<1>({&view});
}

template <class R>
void store(std::byte* y, typename R::Value v) {
  using T = typename R::Result;
  *reinterpret_cast<T*>(y) = T(static_cast<Compute<T>>(v));
}

// A single result: chunks of elements are reduced in parallel, and their results folded in order.
template <class T, class R>
void reduce_all(const StridedLoop<1>& loop, std::byte* y) {
  using Value = typename R::Value;
  const std::int64_t size = loop.size();
  constexpr std::int64_t kChunk = 1 << 16;
  const std::int64_t chunks = std::max<std::int64_t>(1, divide_up(size, kChunk));
  std::vector<Value> partial(static_cast<std::size_t>(chunks), R::start);
  parallel_for(chunks, kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      Value& total = partial[static_cast<std::size_t>(c)];
      for_each_run(loop, c * kChunk, std::min(size, (c + 1) * kChunk),
                   [&](std::int64_t n, const auto& p, const auto& s) {
                     total = R::fold(total, fold_run<T, R>(p[0], s[0], n));
                   });
    }
  });
  Value total = R::start;
  for (Value v : partial) total = R::fold(total, v);
  store<R>(y, total);
}

// For results whose elements adjoin in x: folds row by row.
template <class T, class R>
void reduce_rows(const StridedLoop<2>& kept, const StridedLoop<1>& reduced, std::int64_t cost) {
  using Value = typename R::Value;
  // Wide, so that memory is read in its order, while the results stay in the nearest cache.
  constexpr std::int64_t kWidth = 2048, kLine = 64 / sizeof(T), kAhead = 16;
  parallel_walk(kept, cost, [&](std::int64_t n, const auto& p, const auto& s) {
    Value row[kWidth];
    for (std::int64_t j = 0; j < n; j += kWidth) {
      const std::int64_t m = std::min(kWidth, n - j);
      std::fill_n(row, m, R::start);
      StridedLoop<1> from = reduced;
      from.data[0] = p[1] + j * s[1];
      for_each_run(from, 0, from.size(), [&](std::int64_t run, const auto& q, const auto& step) {
        for (std::int64_t i = 0; i < run; ++i) {
          const std::byte* x = q[0] + i * step[0];
          if (s[1] == sizeof(T)) {
            // The hardware does not prefetch a thread's part of the rows.
            if (m * static_cast<std::int64_t>(sizeof(T)) < step[0]) {
              for (std::int64_t k = 0; k < m; k += kLine) {
                __builtin_prefetch(x + kAhead * step[0] + k * static_cast<int>(sizeof(T)), 0, 2);
              }
            }
            for (std::int64_t k = 0; k < m; ++k) {
              row[k] = R::fold(row[k], load<T, Value>(x + k * static_cast<int>(sizeof(T))));
            }
          } else {
            for (std::int64_t k = 0; k < m; ++k) {
              row[k] = R::fold(row[k], load<T, Value>(x + k * s[1]));
            }
          }
        }
      });
      for (std::int64_t k = 0; k < m; ++k) store<R>(p[0] + (j + k) * s[0], row[k]);
    }
  });
}

// For results with adjoining elements of their own: folds one result after the other.
template <class T, class R>
void reduce_columns(const StridedLoop<2>& kept, const StridedLoop<1>& reduced, std::int64_t cost) {
  parallel_walk(kept, cost, [&](std::int64_t n, const auto& p, const auto& s) {
    for (std::int64_t j = 0; j < n; ++j) {
      typename R::Value total = R::start;
      StridedLoop<1> from = reduced;
      from.data[0] = p[1] + j * s[1];
      for_each_run(from, 0, from.size(), [&](std::int64_t run, const auto& q, const auto& step) {
        total = R::fold(total, fold_run<T, R>(q[0], step[0], run));
      });
      store<R>(p[0] + j * s[0], total);
    }
  });
}

template <class T, class R>
void reduce_with(const Array& x, const Axes& axes, const Array& y) {
  const StridedLoop<1> reduced = reduced_loop(x, axes);
  if (y.size() == 1) return reduce_all<T, R>(reduced, y.data());
  // x without the reduced axes, in x's memory order.
  Array first = y, rows = x;
  for (int i = x.ndim() - 1; i >= 0; --i) {
    if (!axes.contains(i)) continue;
    first = select_view(first, i, 0);
    rows = select_view(rows, i, 0);
  }
  StridedLoop<2> kept = make_loop<2>({&rows, &first});
  std::swap(kept.strides[0], kept.strides[1]);
  std::swap(kept.data[0], kept.data[1]);
  const std::int64_t cost = std::max<std::int64_t>(1, reduced.size());
  const std::int64_t kept_step = std::abs(kept.strides[1].back());
  const std::int64_t reduced_step = std::abs(reduced.strides[0].back());
  if (kept_step < reduced_step) return reduce_rows<T, R>(kept, reduced, cost);
  reduce_columns<T, R>(kept, reduced, cost);
}

void reduce_cpu(Reduction map, const Array& x, const Axes& axes, const Array& y) {
  const GilRelease work(x.size());
  // Sums and products of unsigned integers are those of signed ones, bit by bit.
  const Dtype dtype = map < Reduction::max ? signed_of(x.dtype()) : comparable(x.dtype());
  visit_dtype(dtype, [&]<class T>(Type<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      reducers::visit_reducer<T>(map, [&]<class R>(Type<R>) {
        if constexpr (R::compares || !std::is_unsigned_v<T>) reduce_with<T, R>(x, axes, y);
      });
    }
  });
}

void arg_cpu(Reduction map, const Array& x, int axis, const Array& y) {
  const GilRelease work(x.size());
  const std::int64_t n = x.shape(axis), step = x.strides()[axis];
  const Array rows = select_view(x, axis, 0);
  visit_dtype(comparable(x.dtype()), [&]<class T>(Type<T>) {
    parallel_walk(make_loop<2>({&y, &rows}), n, [&](std::int64_t m, const auto& p, const auto& s) {
      for (std::int64_t j = 0; j < m; ++j) {
        const std::byte* from = p[1] + j * s[1];
        auto best = load<T, Compute<T>>(from);
        std::int32_t at = 0;
        for (std::int64_t i = 1; i < n; ++i) {
          const auto v = load<T, Compute<T>>(from + i * step);
          const bool beaten = map == Reduction::max ? v <= best : v >= best;
          if (!beaten && !is_nan(best)) {
            best = v;
            at = static_cast<std::int32_t>(i);
          }
        }
        *reinterpret_cast<std::int32_t*>(p[0] + j * s[0]) = at;
      }
    });
  });
}

[[maybe_unused]] const bool registered = reduction_kernels.add(0, {reduce_cpu, arg_cpu});

}  // namespace
}  // namespace renga
