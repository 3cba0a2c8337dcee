// Runs kernels written for short contiguous blocks of a dtype, or of the type in which it is
// computed, over arrays of any strides: blocks are gathered, converted, computed and scattered
// while they are in the first cache.
#pragma once

#include <xsimd/xsimd.hpp>

#include "ops/lanes.cpu.h"
#include "tensor/strided_loop.h"

namespace renga {

inline constexpr std::int64_t kBlock = 512;

// Loads n elements of type T, `step` bytes apart, as the compute type.
template <class T>
void gather(const std::byte* from, std::int64_t step, std::int64_t n, Compute<T>* to) {
  if constexpr (is_half<T>) {
    if (step == sizeof(T)) {
      const auto* x = reinterpret_cast<const T*>(from);
      return each_lanes<T>(
          n, [=]<class V>(Type<V>, std::int64_t i) { store(load<V>(x + i), to + i); });
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = static_cast<Compute<T>>(*reinterpret_cast<const T*>(from + i * step));
  }
}

template <class T>
void scatter(const Compute<T>* from, std::byte* to, std::int64_t step, std::int64_t n) {
  if constexpr (is_half<T>) {
    if (step == sizeof(T)) {
      auto* y = reinterpret_cast<T*>(to);
      return each_lanes<T>(
          n, [=]<class V>(Type<V>, std::int64_t i) { store(load<V>(from + i), y + i); });
    }
  }
  for (std::int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(to + i * step) = T(from[i]);
}

// y = f(x) over contiguous blocks, in vectors of the machine's width; the rest goes through one
// padded vector, so that every element is computed by the same instructions wherever it lies.
template <class T, class F>
void vector_map(const T* x, T* y, std::int64_t n, F f) {
  using V = xsimd::batch<Compute<T>>;
  constexpr auto width = static_cast<std::int64_t>(V::size);
  std::int64_t i = 0;
  for (; i + width <= n; i += width) store(V(f(load<V>(x + i))), y + i);
  if (i == n) return;
  T in[V::size], out[V::size];
  std::fill_n(in, V::size, T(Compute<T>(1)));
  std::copy(x + i, x + n, in);
  store(V(f(load<V>(in))), out);
  std::copy_n(out, n - i, y + i);
}

template <class T, class F>
void vector_map(const T* a, const T* b, T* y, std::int64_t n, F f) {
  using V = xsimd::batch<Compute<T>>;
  constexpr auto width = static_cast<std::int64_t>(V::size);
  std::int64_t i = 0;
  for (; i + width <= n; i += width) store(V(f(load<V>(a + i), load<V>(b + i))), y + i);
  if (i == n) return;
  T in_a[V::size], in_b[V::size], out[V::size];
  std::fill_n(in_a, V::size, T(Compute<T>(1)));
  std::fill_n(in_b, V::size, T(Compute<T>(1)));
  std::copy(a + i, a + n, in_a);
  std::copy(b + i, b + n, in_b);
  store(V(f(load<V>(in_a), load<V>(in_b))), out);
  std::copy_n(out, n - i, y + i);
}

// Applies block(x, y, n) to whole arrays of dtype T.
template <class T, class Block>
void map_blocks(const Array& x, const Array& y, std::int64_t cost, const Block& block) {
  parallel_walk(make_loop<2>({&y, &x}), cost, [&](std::int64_t n, const auto& p, const auto& s) {
    if (s[0] == sizeof(T) && s[1] == sizeof(T)) {
      block(reinterpret_cast<const T*>(p[1]), reinterpret_cast<T*>(p[0]), n);
      return;
    }
    Compute<T> in[kBlock], out[kBlock];
    for (std::int64_t i = 0; i < n; i += kBlock) {
      const std::int64_t m = std::min(kBlock, n - i);
      gather<T>(p[1] + i * s[1], s[1], m, in);
      block(in, out, m);
      scatter<T>(out, p[0] + i * s[0], s[0], m);
    }
  });
}

// Applies block(a, b, y, n) to whole arrays of dtype T.
template <class T, class Block>
void map_blocks(const Array& a, const Array& b, const Array& y, std::int64_t cost,
                const Block& block) {
  parallel_walk(make_loop<3>({&y, &a, &b}), cost,
                [&](std::int64_t n, const auto& p, const auto& s) {
                  if (s[0] == sizeof(T) && s[1] == sizeof(T) && s[2] == sizeof(T)) {
                    block(reinterpret_cast<const T*>(p[1]), reinterpret_cast<const T*>(p[2]),
                          reinterpret_cast<T*>(p[0]), n);
                    return;
                  }
                  Compute<T> in_a[kBlock], in_b[kBlock], out[kBlock];
                  for (std::int64_t i = 0; i < n; i += kBlock) {
                    const std::int64_t m = std::min(kBlock, n - i);
                    gather<T>(p[1] + i * s[1], s[1], m, in_a);
                    gather<T>(p[2] + i * s[2], s[2], m, in_b);
                    block(in_a, in_b, out, m);
                    scatter<T>(out, p[0] + i * s[0], s[0], m);
                  }
                });
}

}  // namespace renga
