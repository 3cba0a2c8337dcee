#include "ops/reduction/reduction.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "devices/gil_release.h"
#include "devices/rounding.h"
#include "ops/reduction/cpu/argmax.h"
#include "ops/reduction/cpu/extremes.h"
#include "ops/reduction/cpu/near_sums.h"
#include "tensor/strided_loop.h"

namespace renga::reduction {
namespace {

// Returns what R folds of an element.
template <class T, class R>
typename R::Value element(const std::byte* p) {
  return reducers::element<R>(static_cast<typename R::Value>(load<T>(p)));
}

template <class R>
constexpr bool sums_near =
    std::is_same_v<R, reducers::Sum<bfloat16>> || std::is_same_v<R, reducers::Sum<float16>> ||
    std::is_same_v<R, reducers::Sum<float>> ||
    std::is_same_v<R, reducers::SumOfSquares<bfloat16>> ||
    std::is_same_v<R, reducers::SumOfSquares<float16>>;

// Sums or products of runs of adjoining floats, by 32 partial results in vectors.
template <class T, class R>
void fold_vectors(const std::byte* x, std::int64_t run_step, std::int64_t runs, std::int64_t n,
                  typename R::Value* to) {
  using Value = typename R::Value;
  simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
    using V = simd::Vector<decltype(target), Value>;
    constexpr int count = 32 / V::width;
    constexpr std::int64_t kLine = 64 / sizeof(T), kAhead = 2048 / sizeof(T);
    const auto fold = [](const V& a, const V& b) __attribute__((always_inline)) {
      return R::start == 0 ? a + b : a * b;
    };
    const auto load = [](const T* at) __attribute__((always_inline)) {
      V v;
      if constexpr (std::is_same_v<T, Value>) {
        v = V(V::load(at));
      } else {
        Singles<decltype(target)> singles;
        std::memcpy(&singles, at, sizeof singles);
        v = V(in_double<decltype(target)>(singles));
      }
      if constexpr (requires { R::element(Value()); }) return v * v;
      return v;
    };
    for (std::int64_t k = 0; k < runs; ++k) {
      const T* const run = reinterpret_cast<const T*>(x + k * run_step);
      V parts[count];
      for (V& each : parts) each = V(R::start);
      std::int64_t i = 0;
      for (; i + 32 <= n; i += 32) {
        // What the hardware fetches ahead ends with the page.
        for (std::int64_t j = 0; j < 32; j += kLine) __builtin_prefetch(run + i + kAhead + j);
#pragma GCC unroll 8
        for (int j = 0; j < count; ++j) parts[j] = fold(parts[j], load(run + i + j * V::width));
      }
      for (; i + V::width <= n; i += V::width) parts[0] = fold(parts[0], load(run + i));
      for (int half = count / 2; half > 0; half /= 2) {
        for (int j = 0; j < half; ++j) parts[j] = fold(parts[j], parts[j + half]);
      }
      Value all = R::fold(to[k], simd::fold_lanes(parts[0], fold));
      for (; i < n; ++i) all = R::fold(all, reducers::element<R>(static_cast<Value>(run[i])));
      to[k] = all;
    }
  });
}

// Folds a run of elements. Partial results let the compiler vectorize, and are more exact than a
// single running sum.
template <class T, class R>
typename R::Value fold_run(const std::byte* x, std::int64_t step, std::int64_t n) {
  using Value = typename R::Value;
  constexpr int kPartials = R::compares ? 32 : 16;
  constexpr std::int64_t kItem = sizeof(T);
  if (n < kPartials) {
    Value all = R::start;
    for (std::int64_t i = 0; i < n; ++i) all = R::fold(all, element<T, R>(x + i * step));
    return all;
  }
  if constexpr (is_half<T>) {
    if (step == kItem) {
      Value all = R::start;
      float numbers[kConverted];
      for (; n > 0; n -= kConverted, x += kConverted * kItem) {
        const std::int64_t m = std::min(kConverted, n);
        all = R::fold(all, fold_run<float, R>(converted<T>(x, m, numbers), kFloat, m));
      }
      return all;
    }
  }
  Value partials[kPartials];
  std::fill_n(partials, kPartials, R::start);
  std::int64_t i = 0;
  if (!is_half<T> && step == kItem) {
    for (; i + kPartials <= n; i += kPartials) {
      for (int l = 0; l < kPartials; ++l) {
        partials[l] =
            R::fold(partials[l], element<T, R>(x + (i + l) * static_cast<int>(sizeof(T))));
      }
    }
  }
  for (; i < n; ++i) partials[0] = R::fold(partials[0], element<T, R>(x + i * step));
  if constexpr (R::compares) {
    for (int half = kPartials / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) partials[l] = R::fold(partials[l], partials[l + half]);
    }
    return partials[0];
  }
  for (int l = 1; l < kPartials; ++l) partials[0] = R::fold(partials[0], partials[l]);
  return partials[0];
}

// The innermost loops of a reducer, which alone are compiled for each of them. Partial results are
// numbers of its own type, one after the other in memory of the caller.
struct Loops {
  std::int64_t size;  // of a partial result
  // Partial results of no elements.
  void (*start)(std::byte* partials, std::int64_t n);
  // Folds all elements of runs, `run_step` bytes apart, into a partial result each.
  void (*fold_runs)(std::byte* partials, const std::byte* x, std::int64_t run_step,
                    std::int64_t runs, std::int64_t step, std::int64_t n);
  // Folds rows, a run of them, into as many partial results as a row has elements.
  void (*fold_rows)(std::byte* partials, const std::byte* x, std::int64_t row_step,
                    std::int64_t rows, std::int64_t step, std::int64_t n);
  void (*fold_partial)(std::byte* partial, const std::byte* other);
  void (*store)(const std::byte* partials, std::byte* y, std::int64_t step, std::int64_t n);
};

template <class T, class R>
struct LoopsOf {
  using Value = typename R::Value;
  using Result = typename R::Result;

  static Value& value(std::byte* partial) { return *reinterpret_cast<Value*>(partial); }
  static void start(std::byte* partials, std::int64_t n) {
    std::fill_n(&value(partials), n, R::start);
  }
  static void fold_runs(std::byte* partials, const std::byte* x, std::int64_t run_step,
                        std::int64_t runs, std::int64_t step, std::int64_t n) {
    Value* const to = &value(partials);
    if constexpr (sums_near<R>) {
      if (step == sizeof(T) && n >= kNearShortest)
        return add_near_runs<T, R>(x, run_step, runs, n, to);
    }
    if constexpr (is_half<T>) {
      if (step == sizeof(T) && n > 0 && n < (sums_near<R> ? kNearShortest : kConverted)) {
        std::byte* at = partials;
        return for_converted_rows(x, run_step, runs, n, [&](const auto* numbers, std::int64_t m) {
          LoopsOf<float, R>::fold_runs(at, numbers, n * kFloat, m, kFloat, n);
          at += m * static_cast<std::int64_t>(sizeof(Value));
        });
      }
    }
    if constexpr (std::is_floating_point_v<T> && R::compares) {
      if (step == sizeof(T)) return compare_vectors<R>(x, run_step, runs, n, to);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (step == sizeof(T) && n >= 32) return fold_vectors<T, R>(x, run_step, runs, n, to);
    }
    for (std::int64_t k = 0; k < runs; ++k, x += run_step) {
      to[k] = R::fold(to[k], fold_run<T, R>(x, step, n));
    }
  }
  static void fold_rows(std::byte* partials, const std::byte* x, std::int64_t row_step,
                        std::int64_t rows, std::int64_t step, std::int64_t n) {
    constexpr std::int64_t kItem = sizeof(T), kLine = 64, kAhead = 16;
    if constexpr (sums_near<R>) {
      constexpr std::int64_t kFew = 16;  // 16-bit floats are converted before they are added
      if (step == kItem && (n >= kFew || !is_half<T>)) {
        const std::int64_t rest = add_near_rows<T, R>(x, row_step, rows, n, &value(partials));
        x += (rows - rest) * row_step, rows = rest;
      }
    }
    if constexpr (is_half<T>) {
      if (step == kItem && n > 0) {
        return for_converted_rows(x, row_step, rows, n, [=](const auto* numbers, std::int64_t m) {
          LoopsOf<float, R>::fold_rows(partials, numbers, n * kFloat, m, kFloat, n);
        });
      }
    }
    Value* const __restrict to = &value(partials);
    constexpr std::int64_t kTogether = 4;  // while whose partial results are in registers
    if (!R::compares && step == kItem) {
      for (; rows >= kTogether; rows -= kTogether, x += kTogether * row_step) {
        for (std::int64_t k = 0; k < n; ++k) {
          Value all = to[k];
          for (int row = 0; row < kTogether; ++row) {
            all = R::fold(all, element<T, R>(x + row * row_step + k * kItem));
          }
          to[k] = all;
        }
      }
    }
    for (; rows > 0; --rows, x += row_step) {
      if (step != kItem) {
        for (std::int64_t k = 0; k < n; ++k) to[k] = R::fold(to[k], element<T, R>(x + k * step));
        continue;
      }
      // The hardware does not prefetch a thread's part of the rows.
      for (std::int64_t k = 0; n * kItem < row_step && k < n * kItem; k += kLine) {
        __builtin_prefetch(x + kAhead * row_step + k, 0, 2);
      }
      for (std::int64_t k = 0; k < n; ++k) to[k] = R::fold(to[k], element<T, R>(x + k * kItem));
    }
  }
  // Calls fold(numbers, m) for rows of n adjoining 16-bit floats, m of them at a time as floats.
  template <class Fold>
  static void for_converted_rows(const std::byte* x, std::int64_t row_step, std::int64_t rows,
                                 std::int64_t n, const Fold& fold) {
    alignas(64) float numbers[kConverted];
    // Rows that are added together do not depend on n, of which each thread has its own.
    std::int64_t most = kConverted / n;
    if (most > kNearTogether) most -= most % kNearTogether;
    for (; rows > 0; rows -= most) {
      const std::int64_t m = std::min(most, rows);
      const bool adjoin = row_step == n * static_cast<std::int64_t>(sizeof(T));
      const std::int64_t count = adjoin ? m * n : n;
      for (std::int64_t k = 0; k < m * n; k += count, x += count / n * row_step) {
        converted<T>(x, count, numbers + k);
      }
      fold(reinterpret_cast<const std::byte*>(numbers), m);
    }
  }
  static void fold_partial(std::byte* partial, const std::byte* other) {
    value(partial) = R::fold(value(partial), *reinterpret_cast<const Value*>(other));
  }
  static void store(const std::byte* partials, std::byte* y, std::int64_t step, std::int64_t n) {
    constexpr std::int64_t kItem = sizeof(Result);
    const auto* from = reinterpret_cast<const Value*>(partials);
    const auto put = [=](std::int64_t step) __attribute__((always_inline)) {
      for (std::int64_t k = 0; k < n; ++k) {
        *reinterpret_cast<Result*>(y + k * step) = Result(static_cast<Compute<Result>>(from[k]));
      }
    };
    step == kItem ? put(kItem) : put(step);
  }

  static constexpr Loops table{sizeof(Value), start, fold_runs, fold_rows, fold_partial, store};
};

// Memory for partial results: for so many that memory is read in its order, while they stay in the
// nearest cache.
constexpr std::int64_t kWidth = 2048;
struct Partials {
  alignas(64) std::byte bytes[kWidth * sizeof(std::int64_t)];
};

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

// A single result: chunks of elements are reduced in parallel, and their results folded in order.
void reduce_all(const Loops& loops, const StridedLoop<1>& loop, std::byte* y) {
  const std::int64_t size = loop.size();
  constexpr std::int64_t kChunk = 1 << 16;
  const std::int64_t chunks = std::max<std::int64_t>(1, divide_up(size, kChunk));
  std::vector<std::int64_t> memory(static_cast<std::size_t>(chunks + 1));
  auto* const partials = reinterpret_cast<std::byte*>(memory.data());
  loops.start(partials, chunks + 1);
  parallel_for(chunks, kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      for_each_run(loop, c * kChunk, std::min(size, (c + 1) * kChunk),
                   [&](std::int64_t n, const auto& p, const auto& s) {
                     loops.fold_runs(partials + (c + 1) * loops.size, p[0], 0, 1, s[0], n);
                   });
    }
  });
  for (std::int64_t c = 1; c <= chunks; ++c) {
    loops.fold_partial(partials, partials + c * loops.size);
  }
  loops.store(partials, y, 0, 1);
}

// Folds row by row, for results whose elements adjoin in x.
void reduce_rows(const Loops& loops, const StridedLoop<2>& kept, const StridedLoop<1>& reduced,
                 std::int64_t cost) {
  parallel_walk(kept, cost, [&](std::int64_t n, const auto& p, const auto& s) {
    Partials row;
    for (std::int64_t j = 0; j < n; j += kWidth) {
      const std::int64_t m = std::min(kWidth, n - j);
      loops.start(row.bytes, m);
      StridedLoop<1> from = reduced;
      from.data[0] = p[1] + j * s[1];
      for_each_run(from, 0, from.size(), [&](std::int64_t run, const auto& q, const auto& step) {
        loops.fold_rows(row.bytes, q[0], step[0], run, s[1], m);
      });
      loops.store(row.bytes, p[0] + j * s[0], s[0], m);
    }
  });
}

// Folds one result after the other, for results with adjoining elements of their own.
void reduce_columns(const Loops& loops, const StridedLoop<2>& kept, const StridedLoop<1>& reduced,
                    std::int64_t cost) {
  parallel_walk(kept, cost, [&](std::int64_t n, const auto& p, const auto& s) {
    Partials results;
    StridedLoop<1> from = reduced;
    for (std::int64_t j = 0; j < n; j += kWidth) {
      const std::int64_t m = std::min(kWidth, n - j);
      loops.start(results.bytes, m);
      // The folds follow the order of memory: all results together, or one after the other.
      const bool together =
          from.extents.size() == 1 || std::abs(from.strides[0][0]) > std::abs(s[1]);
      for (std::int64_t k = 0; k < (together ? 1 : m); ++k) {
        from.data[0] = p[1] + (j + k) * s[1];
        for_each_run(from, 0, from.size(), [&](std::int64_t n, const auto& q, const auto& step) {
          loops.fold_runs(results.bytes + k * loops.size, q[0], s[1], together ? m : 1, step[0], n);
        });
      }
      loops.store(results.bytes, p[0] + j * s[0], s[0], m);
    }
  });
}

void reduce_by(const Loops& loops, const Array& x, const Axes& axes, const Array& y) {
  const StridedLoop<1> reduced = reduced_loop(x, axes);
  if (y.size() == 1) return reduce_all(loops, reduced, y.data());
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
  if (kept_step < reduced_step) return reduce_rows(loops, kept, reduced, cost);
  reduce_columns(loops, kept, reduced, cost);
}

void reduce_cpu(Reduction map, const Array& x, const Axes& axes, const Array& y) {
  const GilRelease work(x.size());
  // Sums and products of unsigned integers are those of signed ones, bit by bit.
  const Dtype dtype = map < Reduction::max ? signed_of(x.dtype()) : reducers::comparable(x.dtype());
  visit_dtype(dtype, [&]<class T>(Type<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      reducers::visit_reducer<T>(map, [&]<class R>(Type<R>) {
        if constexpr (R::compares || !std::is_unsigned_v<T>)
          reduce_by(LoopsOf<T, R>::table, x, axes, y);
      });
    }
  });
}

[[maybe_unused]] const bool registered = reduction_kernels.add(0, {reduce_cpu, arg_cpu});

}  // namespace
}  // namespace renga::reduction
