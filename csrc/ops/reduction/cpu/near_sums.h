// Sums of adjoining 16- and 32-bit floats, and of squares of 16-bit ones, which float32 holds
// exactly: a few at a time in float32, and these sums in double.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ops/reduction/reducers.h"
#include "simd/blocked_loop.h"

namespace renga::reduction {

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

// What R adds of adjoining numbers.
template <class R, class V, class T>
[[gnu::always_inline]] inline V load_near(const T* at) {
  const V v(V::load(at));
  if constexpr (requires { R::element(typename R::Value()); }) return v * v;
  return v;
}

// Adds the numbers of a vector to as many in double, which two vectors have.
template <class Target>
[[gnu::always_inline]] inline void add_in_double(const simd::Vector<Target, float>& x,
                                                 simd::Vector<Target, double>* to) {
  Singles<Target> parts[2];
  std::memcpy(parts, &x.v, sizeof parts);
  for (int k = 0; k < 2; ++k) {
    to[k] = to[k] + simd::Vector<Target, double>(in_double<Target>(parts[k]));
  }
}

// Adds the sums of runs of n adjoining numbers to one result each: those of kNearLanes partial
// results in float32 are put together, in pairs, to kLanes, which are added in double. Memory is
// read in its order: the compiler would take one lane after the other of an unrolled loop.
constexpr std::int64_t kLanes = 16, kNearLanes = 4 * kLanes, kNearRows = kNear - 1;
constexpr std::int64_t kNearBlock = kNearRows * kNearLanes, kNearShortest = 2 * kNearLanes;
template <class T, class R>
void add_near_runs(const std::byte* x, std::int64_t run_step, std::int64_t runs, std::int64_t n,
                   double* to) {
  simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using V = simd::Vector<Target, float>;
    using D = simd::Vector<Target, double>;
    constexpr int count = kNearLanes / V::width, lane_count = kLanes / V::width;
    const auto sum = [](const D& a, const D& b) __attribute__((always_inline)) { return a + b; };
    for (std::int64_t k = 0; k < runs; ++k) {
      const T* const run = reinterpret_cast<const T*>(x + k * run_step);
      D lanes[2 * lane_count];
      for (D& each : lanes) each = D(0.0);
      const auto add = [&](const T* from, std::int64_t rows) __attribute__((always_inline)) {
        V near[count];
        for (int j = 0; j < count; ++j) near[j] = load_near<R, V>(from + j * V::width);
#pragma GCC unroll 1
        for (std::int64_t row = 1; row < rows; ++row) {
#pragma GCC unroll 8
          for (int j = 0; j < count; ++j) {
            near[j] = near[j] + load_near<R, V>(from + row * kNearLanes + j * V::width);
          }
        }
        for (int half = count / 2; half >= lane_count; half /= 2) {
          for (int j = 0; j < half; ++j) near[j] = near[j] + near[j + half];
        }
        for (int j = 0; j < lane_count; ++j) add_in_double(near[j], lanes + 2 * j);
      };
      std::int64_t i = 0;
      for (; i + kNearBlock <= n; i += kNearBlock) add(run + i, kNearRows);
      if (n - i >= kNearLanes) add(run + i, (n - i) / kNearLanes), i = n / kNearLanes * kNearLanes;
      for (; i + kLanes <= n; i += kLanes) {
        for (int j = 0; j < lane_count; ++j) {
          add_in_double(load_near<R, V>(run + i + j * V::width), lanes + 2 * j);
        }
      }
      for (int half = lane_count; half > 0; half /= 2) {
        for (int l = 0; l < half; ++l) lanes[l] = lanes[l] + lanes[l + half];
      }
      double all = simd::fold_lanes(lanes[0], sum);
      for (; i < n; ++i) all += reducers::element<R>(static_cast<float>(run[i]));
      to[k] += all;
    }
  });
}
// Adds rows of n numbers, so many at a time, to n results; returns how many rows are left.
constexpr std::int64_t kNearTogether = kNear + 1;
template <class T, class R>
std::int64_t add_near_rows(const std::byte* x, std::int64_t row_step, std::int64_t rows,
                           std::int64_t n, double* __restrict to) {
  simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
    using V = simd::Vector<decltype(target), float>;
    using D = simd::Vector<decltype(target), double>;
    for (std::int64_t row = 0; row + kNearTogether <= rows; row += kNearTogether) {
      const std::byte* const first = x + row * row_step;
      std::int64_t k = 0;
      // Columns of `count` vectors, row by row, in the order of memory.
      const auto take = [&]<int count>(std::integral_constant<int, count>)
          __attribute__((always_inline)) {
        for (; k + count * V::width <= n; k += count * V::width) {
          const auto at = [&](int r, int j) __attribute__((always_inline)) {
            const T* const from = reinterpret_cast<const T*>(first + r * row_step) + k;
            return load_near<R, V>(from + j * V::width);
          };
          V near[count];
          for (int j = 0; j < count; ++j) near[j] = at(0, j);
#pragma GCC unroll 1
          for (int r = 1; r < kNearTogether; ++r) {
#pragma GCC unroll 8
            for (int j = 0; j < count; ++j) near[j] = near[j] + at(r, j);
          }
          for (int j = 0; j < count; ++j) {
            double* const at = to + k + j * V::width;
            D sums[2] = {D(D::load(at)), D(D::load(at + D::width))};
            add_in_double(near[j], sums);
            for (int l = 0; l < 2; ++l) D::store(sums[l].v, at + l * D::width);
          }
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

}  // namespace renga::reduction
