// One pass over several arrays that changes them element by element.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "devices/long_work.h"
#include "tensor/strided_loop.h"

namespace renga {

namespace detail {

inline constexpr std::int64_t kUpdateBlock = 256;

template <class C, std::size_t N, class Rule, std::size_t... K>
void update_block(const std::array<C*, N>& x, std::int64_t n, const Rule& rule,
                  std::index_sequence<K...>) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) rule(x[K][i]...);
}

// Elements of type T in any strides: converted, changed and written back while they are in cache.
template <class T, std::size_t N, class Rule>
void update_strided(const std::array<std::byte*, N>& p, const std::array<std::int64_t, N>& step,
                    std::int64_t n, const Rule& rule) {
  using C = Compute<T>;
  C buffers[N][kUpdateBlock];
  std::array<C*, N> x;
  for (std::size_t k = 0; k < N; ++k) x[k] = buffers[k];
  for (std::int64_t begin = 0; begin < n; begin += kUpdateBlock) {
    const std::int64_t m = std::min(kUpdateBlock, n - begin);
    const auto element = [&](std::size_t k, std::int64_t i) {
      return reinterpret_cast<T*>(p[k] + (begin + i) * step[k]);
    };
    for (std::size_t k = 0; k < N; ++k) {
      for (std::int64_t i = 0; i < m; ++i) x[k][i] = static_cast<C>(*element(k, i));
    }
    update_block(x, m, rule, std::make_index_sequence<N>());
    for (std::size_t k = 0; k < N; ++k) {
      if (k == 1) continue;  // the gradient stays as it is
      for (std::int64_t i = 0; i < m; ++i) *element(k, i) = T(x[k][i]);
    }
  }
}

}  // namespace detail

// Calls rule(x, g, states…) on every element; `make_rule(Type<C>{})` makes the rule for the compute
// type C. The rule takes x and the states by reference and must not change the second, g.
template <class MakeRule, class... Arrays>
void fused_update(const MakeRule& make_rule, const Array& x, const Arrays&... others) {
  constexpr int N = 1 + sizeof...(Arrays);
  const LongWork work(x.size());
  const auto loop = make_loop<N>({&x, &others...});
  const auto update = [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const auto rule = make_rule(Type<C>{});
    parallel_walk(loop, 2 * N, [&](std::int64_t n, const auto& p, const auto& step) {
      const bool dense = std::all_of(step.begin(), step.end(),
                                     [](std::int64_t s) { return s == std::int64_t{sizeof(T)}; });
      if constexpr (std::is_same_v<C, T>) {
        if (dense) {
          std::array<C*, N> typed;
          for (int k = 0; k < N; ++k) typed[k] = reinterpret_cast<C*>(p[k]);
          detail::update_block(typed, n, rule, std::make_index_sequence<N>());
          return;
        }
      }
      detail::update_strided<T>(p, step, n, rule);
    });
  };
  switch (x.dtype()) {
    case Dtype::float16:
      return update(Type<float16>{});
    case Dtype::bfloat16:
      return update(Type<bfloat16>{});
    case Dtype::float32:
      return update(Type<float>{});
    default:
      return update(Type<double>{});
  }
}

}  // namespace renga
