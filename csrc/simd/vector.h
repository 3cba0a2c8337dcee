// Loops over the elements of any float dtype in vectors of a target. Everything is inlined, to be
// compiled for the target of its caller.
#pragma once

#include <algorithm>

#include "simd/float_vector.h"
#include "simd/scalar.h"
#include "tensor/dtype.h"
#include "tensor/streaming.cpu.h"

namespace renga::simd {

// Keeps a load apart from a following select. The compiler would fuse them into one masked load,
// which waits for the mask.
template <class V>
[[gnu::always_inline]] inline V force_load(V v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#endif
  return v;
}

// A vector of elements of type C. load() and store() convert elements of a dtype that is computed
// in C.
template <class Target, class C>
struct Vector {
  static constexpr int width = 4 * Target::width / static_cast<int>(sizeof(C));
  using V [[gnu::vector_size(4 * Target::width)]] = C;
  using Unaligned [[gnu::vector_size(4 * Target::width), gnu::aligned(4), gnu::may_alias]] = C;
  using UnalignedHalves [[gnu::vector_size(2 * Target::width), gnu::aligned(2), gnu::may_alias]] =
      std::uint16_t;

  // In one instruction; the compiler would use one per lane.
  [[gnu::always_inline]] static V broadcast(const C* from) {
    V v;
#if defined(__x86_64__)
    if constexpr (sizeof(C) == sizeof(float)) {
      asm("vbroadcastss %1, %0" : "=v"(v) : "m"(*from));
    } else {
      asm("vbroadcastsd %1, %0" : "=v"(v) : "m"(*from));
    }
#else
    for (int k = 0; k < width; ++k) v[k] = *from;
#endif
    return v;
  }
  [[gnu::always_inline]] static V load(const C* from) {
    return *reinterpret_cast<const Unaligned*>(from);
  }
  [[gnu::always_inline]] static void store(const V& v, C* to) {
    *reinterpret_cast<Unaligned*>(to) = v;
  }
  [[gnu::always_inline]] static V load(const bfloat16* from) { return load_floats<Target>(from); }
  [[gnu::always_inline]] static void store(const V& v, bfloat16* to) {
    store_floats<Target>(v, to);
  }
  [[gnu::always_inline]] static V load(const float16* from) {
    V v;
#if defined(__x86_64__)
    asm("vcvtph2ps %1, %0" : "=v"(v) : "m"(*reinterpret_cast<const UnalignedHalves*>(from)));
#else
    for (int k = 0; k < width; ++k) v[k] = static_cast<float>(from[k]);
#endif
    return v;
  }
  [[gnu::always_inline]] static void store(const V& v, float16* to) {
#if defined(__x86_64__)
    asm("vcvtps2ph $0, %1, %0" : "=m"(*reinterpret_cast<UnalignedHalves*>(to)) : "v"(v));
#else
    for (int k = 0; k < width; ++k) to[k] = float16(static_cast<float>(v[k]));
#endif
  }
  // Past the caches (tensor/streaming.cpu.h), to whole vectors.
  [[gnu::always_inline]] static void stream(const V& v, C* to) { renga::stream(v, to); }
  [[gnu::always_inline]] static void stream(const V& v, bfloat16* to) {
    renga::stream(to_bfloat16<Target>(v), to);
  }
  [[gnu::always_inline]] static void stream(const V& v, float16* to) { store(v, to); }
  // Kept apart from a following select.
  template <class T>
  [[gnu::always_inline]] static V load_apart(const T* from) {
    return force_load(load(from));
  }
  // v in the lanes whose bits are set, 0 in the others.
  [[gnu::always_inline]] static V masked(std::uint32_t bits, const V& v) {
    using Words [[gnu::vector_size(4 * Target::width)]] =
        std::conditional_t<sizeof(C) == sizeof(float), std::uint32_t, std::uint64_t>;
    Words all, lane;
#if defined(__x86_64__)
    if constexpr (sizeof(C) == sizeof(float)) {
      asm("vmovd %1, %x0\n\tvpbroadcastd %x0, %0" : "=v"(all) : "r"(bits));
    } else {
      asm("vmovd %1, %x0\n\tvpbroadcastq %x0, %0" : "=v"(all) : "r"(bits));
    }
#else
    all = Words{} + bits;
#endif
    for (int k = 0; k < width; ++k) lane[k] = 1u << k;
    return (all & lane) != 0 ? force_load(v) : V{};
  }
  // Rounded to T.
  template <class T>
  [[gnu::always_inline]] static V rounded_to(const V& v) {
    if constexpr (std::is_same_v<T, bfloat16>) {
      return from_bfloat16<Target>(to_bfloat16<Target>(v));
    } else if constexpr (std::is_same_v<T, float16>) {
      T halves[width];
      store(v, halves);
      return load(halves);
    } else {
      return v;
    }
  }
  [[gnu::always_inline]] static C sum(const V& v) {
    C total = 0;
    for (int lane = 0; lane < width; ++lane) total += v[lane];
    return total;
  }
};

// Calls body(Vector{}, i), or body(Scalar{}, i) if there are fewer elements than a vector has, for
// the elements from i on, until [begin, n) is covered. The last vector may overlap the one before
// it.
template <class Target, class C, class Body>
[[gnu::always_inline]] inline void for_each_vector(std::int64_t begin, std::int64_t n,
                                                   const Body& body) {
  using L = Vector<Target, C>;
  std::int64_t i = begin;
  if (n < L::width) {
    for (; i < n; ++i) body(Scalar<C>{}, i);
    return;
  }
  // The body is compiled once for vectors.
  for (; i < n; i += L::width) body(L{}, std::min<std::int64_t>(i, n - L::width));
}

}  // namespace renga::simd
