// Applies an update rule to the elements of several arrays in one pass.
#include <algorithm>
#include <array>
#include <utility>

#include "devices/gil_release.h"
#include "optimizers/kernels.h"
#include "simd/blocked_loop.h"
#include "tensor/strided_loop.h"

namespace renga {
namespace {

constexpr std::int64_t kUpdateBlock = 1024, kHalfBlock = 64;

template <class C, std::size_t N, class Rule, std::size_t... K>
void update_block(const std::array<C*, N> x, std::int64_t n, const Rule rule,
                  std::index_sequence<K...>) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) rule(x[K][i]...);
}

// Takes any strides and dtypes: elements are converted, updated and written back block by block, in
// cache.
template <class T, std::size_t N, class Rule>
void update_strided(const std::array<std::byte*, N>& p, const std::array<std::int64_t, N>& step,
                    std::int64_t n, const Rule& rule) {
  using C = Compute<T>;
  C buffers[N][kUpdateBlock];
  std::array<C*, N> x;
  for (std::size_t k = 0; k < N; ++k) x[k] = buffers[k];
  for (std::int64_t begin = 0; begin < n; begin += kUpdateBlock) {
    const std::int64_t m = std::min(kUpdateBlock, n - begin);
    for (std::size_t k = 0; k < N; ++k) {
      simd::gather<T>(p[k] + begin * step[k], step[k], m, x[k]);
    }
    update_block(x, m, rule, std::make_index_sequence<N>());
    for (std::size_t k = 0; k < N; ++k) {
      if (k == 1) continue;  // the gradient is not changed
      simd::scatter<T>(x[k], p[k] + begin * step[k], step[k], m);
    }
  }
}

// Blocks of adjoining 16-bit numbers, n in all. They are so short that the processor reads the next
// one while it computes. Vectors are those of the compiled rule: a load that covers several stores
// waits for them.
template <class T, std::size_t N, class Rule>
void update_halves(const std::array<T*, N>& p, std::int64_t n, const Rule& rule) {
  using V = simd::Vector<simd::Avx2, float>;
  float buffers[N][kHalfBlock];
  std::array<float*, N> x;
  for (std::size_t k = 0; k < N; ++k) x[k] = buffers[k];
  for (std::int64_t begin = 0; begin < n; begin += kHalfBlock) {
    for (std::size_t k = 0; k < N; ++k) {
      for (std::int64_t i = 0; i < kHalfBlock; i += V::width) {
        V::store(V::load(p[k] + begin + i), x[k] + i);
      }
    }
    update_block(x, kHalfBlock, rule, std::make_index_sequence<N>());
    for (std::size_t k = 0; k < N; ++k) {
      if (k == 1) continue;  // the gradient is not changed
      for (std::int64_t i = 0; i < kHalfBlock; i += V::width) {
        V::store(V::load(x[k] + i), p[k] + begin + i);
      }
    }
  }
}

template <class T, std::size_t N, class Rule>
void update_run(std::array<std::byte*, N> p, const std::array<std::int64_t, N>& step,
                std::int64_t n, const Rule& rule) {
  const bool dense = std::all_of(step.begin(), step.end(),
                                 [](std::int64_t s) { return s == std::int64_t{sizeof(T)}; });
  if (!dense) return update_strided<T>(p, step, n, rule);
  std::array<T*, N> typed;
  for (std::size_t k = 0; k < N; ++k) typed[k] = reinterpret_cast<T*>(p[k]);
  if constexpr (is_half<T>) {
    const std::int64_t whole = n - n % kHalfBlock;
    update_halves(typed, whole, rule);
    for (std::size_t k = 0; k < N; ++k) p[k] += whole * step[k];
    update_strided<T>(p, step, n - whole, rule);
  } else {
    update_block(typed, n, rule, std::make_index_sequence<N>());
  }
}

// Changes the gradient and updates x, block by block, so that blocks stay in cache.
template <class T, std::size_t N, class Rule>
void update_changed(std::array<std::byte*, N> p, const std::array<std::int64_t, N>& step,
                    std::int64_t n, const Rule& rule, const Gradient& g) {
  constexpr std::int64_t kBlock = 1024;
  const rules::Scale<Compute<T>> multiply{static_cast<Compute<T>>(g.scale)};
  const rules::AddScaled<Compute<T>> add{static_cast<Compute<T>>(g.decay)};
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t m = std::min(kBlock, n - begin);
    if (g.scale != 1) update_run<T, 1>({p[1]}, {step[1]}, m, multiply);
    if (g.decay != 0) update_run<T, 2>({p[1], p[0]}, {step[1], step[0]}, m, add);
    update_run<T, N>(p, step, m, rule);
    for (std::size_t k = 0; k < N; ++k) p[k] += m * step[k];
  }
}

struct CpuKernels {
  template <template <class> class Functor, std::size_t kStates, std::size_t kOptions>
  static void update(std::span<const UpdateCall> calls) {
    std::int64_t size = 0;
    for (const UpdateCall& call : calls) size += call.x.size();
    const GilRelease work(size);
    for (const UpdateCall& call : calls) {
      visit_dtype(call.x.dtype(), [&]<class T>(Type<T>) {
        if constexpr (is_floating<T>) {
          auto rule = make_rule<Functor<Compute<T>>, kOptions>(call.options);
          if (Mask(call.g.mask).admits(rule)) update_all<T, 2 + kStates>(call, rule);
        }
      });
    }
  }

  // Calls rule(x, g, states…) on every element, of g after its scale and decay.
  template <class T, int N, class Rule>
  static void update_all(const UpdateCall& call, const Rule& rule) {
    const auto loop = make_loop<N>(operands_of<N>(call));
    const Gradient& g = call.g;
    parallel_walk(loop, 2 * N, [&](std::int64_t n, const auto& p, const auto& step) {
      if (g.scale == 1 && g.decay == 0) {
        update_run<T>(p, step, n, rule);
      } else {
        update_changed<T>(p, step, n, rule, g);
      }
    });
  }
};

[[maybe_unused]] const bool registered = update_kernels.add(0, rule_kernels<CpuKernels>());

}  // namespace
}  // namespace renga
