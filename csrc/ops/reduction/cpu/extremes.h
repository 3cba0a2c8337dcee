// The largest and smallest of adjoining numbers.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/reduction/reducers.h"
#include "simd/blocked_loop.h"
#include "simd/first_floats.h"
#include "tensor/convert.h"

namespace renga::reduction {

template <class T>
Compute<T> load(const std::byte* p) {
  return static_cast<Compute<T>>(*reinterpret_cast<const T*>(p));
}

// Adjoining 16-bit floats are converted, so many at a time, to be folded as floats.
constexpr std::int64_t kConverted = 4096, kFloat = sizeof(float);
template <class T>
const std::byte* converted(const std::byte* x, std::int64_t n, float* numbers) {
  simd::convert(reinterpret_cast<const T*>(x), numbers, n);
  return reinterpret_cast<const std::byte*>(numbers);
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

}  // namespace renga::reduction
