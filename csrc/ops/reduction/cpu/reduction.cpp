#include "ops/reduction/reduction.h"

#include <array>
#include <cstring>
#include <vector>

#include "devices/gil_release.h"
#include "devices/rounding.h"
#include "ops/reduction/reducers.h"
#include "simd/blocked_loop.h"
#include "simd/first_floats.h"
#include "tensor/convert.h"
#include "tensor/strided_loop.h"

namespace renga {
namespace {

using reducers::comparable, reducers::is_nan;

template <class T>
Compute<T> load(const std::byte* p) {
  return static_cast<Compute<T>>(*reinterpret_cast<const T*>(p));
}
// Returns what R folds of an element.
template <class T, class R>
typename R::Value element(const std::byte* p) {
  return reducers::element<R>(static_cast<typename R::Value>(load<T>(p)));
}

template <class R>
constexpr bool sums_near =
    std::is_same_v<R, reducers::Sum<bfloat16>> || std::is_same_v<R, reducers::Sum<float16>> ||
    std::is_same_v<R, reducers::Sum<float>>;

// Floats of 32 and 16 bits that adjoin, and those of rows, are summed up in float32, by at most so
// many additions one after the other, whose sums are added in double: a sum differs from the exact
// one by at most 8 units of 2^-24 of the sum of the numbers' magnitudes.
constexpr int kNear = 7;

// Floats as doubles, in one instruction; the compiler would use three for eight of them.
template <class Target>
using Singles [[gnu::vector_size(2 * Target::width)]] = float;
template <class Target>
[[gnu::always_inline]] inline auto in_double(const Singles<Target>& singles) {
  typename simd::Vector<Target, double>::V v;
#if defined(__x86_64__)
  asm("vcvtps2pd %1, %0" : "=v"(v) : "v"(singles));
#else
  v = __builtin_convertvector(singles, decltype(v));
#endif
  return v;
}

// Adds the numbers of a vector to as many in double.
template <class Target>
[[gnu::always_inline]] inline void add_in_double(const simd::Vector<Target, float>& x, double* to) {
  using D = simd::Vector<Target, double>;
  Singles<Target> parts[2];
  std::memcpy(parts, &x.v, sizeof parts);
  for (int k = 0; k < 2; ++k) {
    double* const at = to + k * D::width;
    D::store(D::load(at) + in_double<Target>(parts[k]), at);
  }
}

// Adds the sums of runs of n adjoining numbers to one result each: those of kNearLanes partial
// results in float32 are put together, in pairs, to kLanes, which are added in double. Memory is
// read in its order: the compiler would take one lane after the other of an unrolled loop.
constexpr std::int64_t kLanes = 16, kNearLanes = 4 * kLanes, kNearRows = kNear - 1;
constexpr std::int64_t kNearBlock = kNearRows * kNearLanes, kNearShortest = 2 * kNearLanes;
template <class T>
void add_near_runs(const std::byte* x, std::int64_t run_step, std::int64_t runs, std::int64_t n,
                   double* to) {
  simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
    using V = simd::Vector<decltype(target), float>;
    constexpr int count = kNearLanes / V::width, lane_count = kLanes / V::width;
    for (std::int64_t k = 0; k < runs; ++k) {
      const T* const run = reinterpret_cast<const T*>(x + k * run_step);
      alignas(64) double lanes[kLanes] = {};
      const auto add = [&](const T* from, std::int64_t rows) __attribute__((always_inline)) {
        V near[count];
        for (int j = 0; j < count; ++j) near[j] = V(V::load(from + j * V::width));
#pragma GCC unroll 1
        for (std::int64_t row = 1; row < rows; ++row) {
#pragma GCC unroll 8
          for (int j = 0; j < count; ++j) {
            near[j] = near[j] + V(V::load(from + row * kNearLanes + j * V::width));
          }
        }
        for (int half = count / 2; half >= lane_count; half /= 2) {
          for (int j = 0; j < half; ++j) near[j] = near[j] + near[j + half];
        }
        for (int j = 0; j < lane_count; ++j) add_in_double(near[j], lanes + j * V::width);
      };
      std::int64_t i = 0;
      for (; i + kNearBlock <= n; i += kNearBlock) add(run + i, kNearRows);
      if (n - i >= kNearLanes) add(run + i, (n - i) / kNearLanes), i = n / kNearLanes * kNearLanes;
      for (; i + kLanes <= n; i += kLanes) {
        for (std::int64_t j = 0; j < kLanes; j += V::width) {
          add_in_double(V(V::load(run + i + j)), lanes + j);
        }
      }
      for (int half = kLanes / 2; half > 0; half /= 2) {
        for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
      }
      for (; i < n; ++i) lanes[0] += static_cast<double>(static_cast<float>(run[i]));
      to[k] += lanes[0];
    }
  });
}
// Adds rows of n numbers, so many at a time, to n results; returns how many rows are left.
constexpr std::int64_t kNearTogether = kNear + 1;
template <class T>
std::int64_t add_near_rows(const std::byte* x, std::int64_t row_step, std::int64_t rows,
                           std::int64_t n, double* __restrict to) {
  simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
    using V = simd::Vector<decltype(target), float>;
    for (std::int64_t row = 0; row + kNearTogether <= rows; row += kNearTogether) {
      const std::byte* const first = x + row * row_step;
      std::int64_t k = 0;
      // Columns of `count` vectors, row by row, in the order of memory.
      const auto take = [&]<int count>(std::integral_constant<int, count>)
          __attribute__((always_inline)) {
        for (; k + count * V::width <= n; k += count * V::width) {
          const auto at = [&](int r, int j) __attribute__((always_inline)) {
            const T* const from = reinterpret_cast<const T*>(first + r * row_step) + k;
            return V(V::load(from + j * V::width));
          };
          V near[count];
          for (int j = 0; j < count; ++j) near[j] = at(0, j);
#pragma GCC unroll 1
          for (int r = 1; r < kNearTogether; ++r) {
#pragma GCC unroll 8
            for (int j = 0; j < count; ++j) near[j] = near[j] + at(r, j);
          }
          for (int j = 0; j < count; ++j) add_in_double(near[j], to + k + j * V::width);
        }
      };
      take(std::integral_constant<int, 8>{});
      take(std::integral_constant<int, 4>{});
      take(std::integral_constant<int, 2>{});
      take(std::integral_constant<int, 1>{});
      for (; k < n; ++k) {
        const auto at = [=](int r) {
          return static_cast<float>(reinterpret_cast<const T*>(first + r * row_step)[k]);
        };
        float near = at(0);
#pragma GCC unroll 8
        for (int r = 1; r < kNearTogether; ++r) near += at(r);
        to[k] += static_cast<double>(near);
      }
    }
  });
  return rows % kNearTogether;
}

// Adjoining 16-bit floats are converted, so many at a time, to be folded as floats.
constexpr std::int64_t kConverted = 4096, kFloat = sizeof(float);
template <class T>
const std::byte* converted(const std::byte* x, std::int64_t n, float* numbers) {
  simd::convert(reinterpret_cast<const T*>(x), numbers, n);
  return reinterpret_cast<const std::byte*>(numbers);
}

// Sums or products of runs of adjoining floats, by 32 partial results in vectors.
template <class T, class R>
void fold_vectors(const std::byte* x, std::int64_t run_step, std::int64_t runs, std::int64_t n,
                  typename R::Value* to) {
  using Value = typename R::Value;
  simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
    using V = simd::Vector<decltype(target), Value>;
    constexpr int count = 32 / V::width;
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

// The largest or smallest numbers of runs of adjoining floats; NaN of those that have one.
template <class R, class C>
void compare_vectors(const std::byte* x, std::int64_t run_step, std::int64_t runs, std::int64_t n,
                     C* to) {
  simd::dispatch_for<C>([=](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using V = simd::Vector<Target, C>;
    const auto fold = [](const V& a, const V& b) __attribute__((always_inline)) {
      return R::start < 0 ? max(a, b) : min(a, b);
    };
    const auto are_numbers = [](const V& a, const V& b) __attribute__((always_inline)) {
      constexpr int kOrdered = 7;
      if constexpr (Target::has_mask_registers) return V::M::template of<kOrdered>(a.v, b.v);
      return (a == a) && (b == b);
    };
    const C nan = std::numeric_limits<C>::quiet_NaN();
    for (std::int64_t k = 0; k < runs; ++k) {
      const C* const run = reinterpret_cast<const C*>(x + k * run_step);
      V best[2] = {V(R::start), V(R::start)};
      auto held = best[0] == best[0];
      std::int64_t i = 0;
      // A mask that a loop carries waits in other registers: several vectors share one.
      const auto take = [&]<int count>(std::integral_constant<int, count>)
          __attribute__((always_inline)) {
        for (; i + count * V::width <= n; i += count * V::width) {
          V v[count];
          for (int j = 0; j < count; ++j) v[j] = V(V::load(run + i + j * V::width));
          auto all_held = are_numbers(v[0], v[1]);
          for (int j = 2; j < count; j += 2) all_held = all_held && are_numbers(v[j], v[j + 1]);
          held = held && all_held;
          for (int j = 0; j < count; ++j) best[j % 2] = fold(v[j], best[j % 2]);
        }
      };
      take(std::integral_constant<int, 8>{});
      take(std::integral_constant<int, 2>{});
      simd::for_vectors<Target>(
          run + i, n - i,
          R::start, [&](const V& v, std::int64_t, std::int64_t) __attribute__((always_inline)) {
            held = held && (v == v);
            best[0] = fold(v, best[0]);
          });
      to[k] = R::fold(to[k], all(held) ? simd::fold_lanes(fold(best[0], best[1]), fold) : nan);
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
        return add_near_runs<T>(x, run_step, runs, n, to);
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
        const std::int64_t rest = add_near_rows<T>(x, row_step, rows, n, &value(partials));
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
  const Dtype dtype = map < Reduction::max ? signed_of(x.dtype()) : comparable(x.dtype());
  visit_dtype(dtype, [&]<class T>(Type<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      reducers::visit_reducer<T>(map, [&]<class R>(Type<R>) {
        if constexpr (R::compares || !std::is_unsigned_v<T>)
          reduce_by(LoopsOf<T, R>::table, x, axes, y);
      });
    }
  });
}

constexpr std::int64_t kArgColumns = 512;  // whose best numbers stay in the nearest cache
constexpr std::int64_t kShortest = 32;     // run of floats that is worth the call for vectors

// The first index of the largest or smallest number of a run.
template <class T, bool largest>
std::int32_t arg_of_run(const std::byte* x, std::int64_t step, std::int64_t n) {
  auto best = load<T>(x);
  std::int32_t at = 0;
  for (std::int64_t i = 1; i < n; ++i) {
    const auto v = load<T>(x + i * step);
    const bool beaten = largest ? v <= best : v >= best;
    if (!beaten && !is_nan(best)) {
      best = v;
      at = static_cast<std::int32_t>(i);
    }
  }
  return at;
}

// The same for adjoining floats, a block at a time, whose best number is found in vectors: only the
// block that has the best one of all is searched for its place.
template <class T, bool largest>
std::int32_t arg_of_floats(const T* x, std::int64_t n) {
  using R = std::conditional_t<largest, reducers::Max<T>, reducers::Min<T>>;
  constexpr std::int64_t kBlock = 1024;
  T best = R::start;
  const T* from = x;
  for (std::int64_t i = 0; i < n && !is_nan(best); i += kBlock) {
    T top = R::start;
    const auto* const block = reinterpret_cast<const std::byte*>(x + i);
    compare_vectors<R>(block, 0, 1, std::min(kBlock, n - i), &top);
    if (largest ? !(top <= best) : !(top >= best)) best = top, from = x + i;
  }
  constexpr std::int64_t kGroup = 64;
  for (const T* const end = x + n;; from += kGroup) {
    const std::int64_t m = std::min(kGroup, end - from);
    std::int64_t places = 0;
    for (std::int64_t i = 0; i < m; ++i) places += is_nan(best) ? is_nan(from[i]) : from[i] == best;
    if (places == 0) continue;
    while (is_nan(best) ? !is_nan(*from) : *from != best) ++from;
    return static_cast<std::int32_t>(from - x);
  }
}

// Finds the first index of the largest or smallest number of each column of adjoining numbers, row
// by row, without branches. The compiler makes vectors of this loop, but not of one over float16,
// whose rows are converted first.
template <class T, bool largest>
void arg_of_rows(const std::byte* x, std::int64_t row_step, std::int64_t rows, std::int64_t n,
                 std::int32_t* __restrict at) {
  using Element = std::conditional_t<std::is_same_v<T, float16>, float, T>;
  constexpr auto item = static_cast<int>(sizeof(Element));
  [[maybe_unused]] float numbers[kArgColumns];
  const auto elements_of = [&](const std::byte* row) {
    if constexpr (std::is_same_v<T, Element>) return row;
    if constexpr (!std::is_same_v<T, Element>) return converted<T>(row, n, numbers);
  };
  Compute<T> best[kArgColumns];
  const std::byte* from = elements_of(x);
  for (std::int64_t k = 0; k < n; ++k) {
    best[k] = load<Element>(from + k * item);
    at[k] = 0;
  }
  for (std::int64_t i = 1; i < rows; ++i) {
    x += row_step;
    from = elements_of(x);
    for (std::int64_t k = 0; k < n; ++k) {
      const Compute<T> v = load<Element>(from + k * item);
      const bool is_better = !(largest ? v <= best[k] : v >= best[k]) & !is_nan(best[k]);
      best[k] = is_better ? v : best[k];
      at[k] = is_better ? static_cast<std::int32_t>(i) : at[k];
    }
  }
}

void arg_cpu(Reduction map, const Array& x, int axis, const Array& y) {
  const GilRelease work(x.size());
  const std::int64_t n = x.shape(axis), step = x.strides()[axis];
  const Array rows = select_view(x, axis, 0);
  visit_dtype(comparable(x.dtype()), [&]<class T>(Type<T>) {
    const bool largest = map == Reduction::max;
    const auto of_run = largest ? arg_of_run<T, true> : arg_of_run<T, false>;
    const auto of_rows = largest ? arg_of_rows<T, true> : arg_of_rows<T, false>;
    parallel_walk(make_loop<2>({&y, &rows}), n, [&](std::int64_t m, const auto& p, const auto& s) {
      if (s[1] == sizeof(T) && s[0] == sizeof(std::int32_t)) {
        for (std::int64_t j = 0; j < m; j += kArgColumns) {
          of_rows(p[1] + j * s[1], step, n, std::min(kArgColumns, m - j),
                  reinterpret_cast<std::int32_t*>(p[0]) + j);
        }
        return;
      }
      for (std::int64_t j = 0; j < m; ++j) {
        auto& at = *reinterpret_cast<std::int32_t*>(p[0] + j * s[0]);
        const std::byte* const run = p[1] + j * s[1];
        if constexpr (std::is_floating_point_v<T>) {
          if (step == sizeof(T) && n >= kShortest) {
            const auto* const floats = reinterpret_cast<const T*>(run);
            at = largest ? arg_of_floats<T, true>(floats, n) : arg_of_floats<T, false>(floats, n);
            continue;
          }
        }
        at = of_run(run, step, n);
      }
    });
  });
}

[[maybe_unused]] const bool registered = reduction_kernels.add(0, {reduce_cpu, arg_cpu});

}  // namespace
}  // namespace renga
