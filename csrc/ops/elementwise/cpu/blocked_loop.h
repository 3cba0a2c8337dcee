// Runs kernels written for short contiguous blocks of a dtype, or of the type in which it is
// computed, over arrays of any strides: blocks are gathered, converted, computed and scattered
// while they are in the first cache.
#pragma once

#include <algorithm>
#include <xsimd/xsimd.hpp>

#include "simd/batch.h"
#include "tensor/streaming.cpu.h"
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

// An operand of a run of n elements: blocks of it where they lie or, if they do not adjoin or are
// not of the compute type, gathered. One element for all of them is gathered once.
template <class T>
class Blocks {
 public:
  Blocks(const std::byte* data, std::int64_t step, std::int64_t n) : data_(data), step_(step) {
    if (step == 0) gather<T>(data, 0, std::min(kBlock, n), block_);
  }
  const Compute<T>* at(std::int64_t i, std::int64_t n) {
    if (step_ == 0) return block_;
    if constexpr (std::is_same_v<T, Compute<T>>) {
      if (step_ == sizeof(T)) return reinterpret_cast<const T*>(data_) + i;
    }
    gather<T>(data_ + i * step_, step_, n, block_);
    return block_;
  }

 private:
  const std::byte* data_;
  std::int64_t step_;
  Compute<T> block_[kBlock];
};

// The results of a run of n elements: blocks of them where they are to lie or, if they do not
// adjoin or are not of the compute type, on their way there.
template <class T>
class Results {
 public:
  Results(std::byte* data, std::int64_t step, bool streams)
      : data_(data), step_(step), streams_(streams) {}
  ~Results() {
    if (streams_) finish_streaming();
  }
  Compute<T>* at(std::int64_t i) {
    if constexpr (std::is_same_v<T, Compute<T>>) {
      if (step_ == sizeof(T) && !streams_) return reinterpret_cast<T*>(data_) + i;
    }
    return block_;
  }
  void put(std::int64_t i, std::int64_t n) {
    if constexpr (std::is_same_v<T, Compute<T>>) {
      if (step_ == sizeof(T)) {
        if (streams_) stream(block_, reinterpret_cast<T*>(data_) + i, n);
        return;
      }
    }
    scatter<T>(block_, data_ + i * step_, step_, n);
  }

 private:
  std::byte* data_;
  std::int64_t step_;
  bool streams_;
  alignas(64) Compute<T> block_[kBlock];
};

// Whether all operands of a run adjoin.
template <class T, std::size_t N>
bool adjoin(const std::array<std::int64_t, N>& steps) {
  return std::ranges::all_of(steps, [](std::int64_t step) { return step == sizeof(T); });
}

// Whether runs of n elements of y are worth it.
template <class T>
bool streams(const Array& y, std::int64_t n) {
  return n >= kBlock && !is_half<T> && pays_streaming(y.size() * y.itemsize());
}

// Applies block(x, y, n) to whole arrays of dtype T.
template <class T, class Block>
void map_blocks(const Array& x, const Array& y, std::int64_t cost, const Block& block) {
  parallel_walk(make_loop<2>({&y, &x}), cost, [&](std::int64_t n, const auto& p, const auto& s) {
    const bool streamed = streams<T>(y, n);
    if (adjoin<T>(s) && !streamed) {
      block(reinterpret_cast<const T*>(p[1]), reinterpret_cast<T*>(p[0]), n);
      return;
    }
    Blocks<T> in(p[1], s[1], n);
    Results<T> out(p[0], s[0], streamed);
    for (std::int64_t i = 0; i < n; i += kBlock) {
      const std::int64_t m = std::min(kBlock, n - i);
      block(in.at(i, m), out.at(i), m);
      out.put(i, m);
    }
  });
}

// Applies block(a, b, y, n) to whole arrays of dtype T.
template <class T, class Block>
void map_blocks(const Array& a, const Array& b, const Array& y, std::int64_t cost,
                const Block& block) {
  parallel_walk(make_loop<3>({&y, &a, &b}), cost,
                [&](std::int64_t n, const auto& p, const auto& s) {
                  const bool streamed = streams<T>(y, n);
                  if (adjoin<T>(s) && !streamed) {
                    block(reinterpret_cast<const T*>(p[1]), reinterpret_cast<const T*>(p[2]),
                          reinterpret_cast<T*>(p[0]), n);
                    return;
                  }
                  Blocks<T> in_a(p[1], s[1], n), in_b(p[2], s[2], n);
                  Results<T> out(p[0], s[0], streamed);
                  for (std::int64_t i = 0; i < n; i += kBlock) {
                    const std::int64_t m = std::min(kBlock, n - i);
                    block(in_a.at(i, m), in_b.at(i, m), out.at(i), m);
                    out.put(i, m);
                  }
                });
}

}  // namespace renga
