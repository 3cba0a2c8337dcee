// Loops over elements of any float dtype in vectors of the best instruction set (dispatch.h).
// Everything is inlined, to be compiled for the set of its caller.
#pragma once

#include "simd/dispatch.h"
#include "tensor/dtype.h"

namespace renga {

// Numbers that are loaded whatever is chosen. The compiler would make a load and a choice one
// instruction, which asks the memory only when it knows the choice.
template <class V>
[[gnu::always_inline]] inline V loaded(V v) {
  asm("" : "+v"(v));
  return v;
}

// As many numbers of type C as a vector of the target holds. Elements of a dtype computed in C are
// converted on their way from and to memory.
template <class Target, class C>
struct Lanes {
  static constexpr int width = 4 * Target::width / static_cast<int>(sizeof(C));
  using V [[gnu::vector_size(4 * Target::width)]] = C;
  using Anywhere [[gnu::vector_size(4 * Target::width), gnu::aligned(4), gnu::may_alias]] = C;
  using Halves [[gnu::vector_size(2 * Target::width), gnu::aligned(2), gnu::may_alias]] =
      std::uint16_t;

  // One number in all lanes: one instruction, of which the compiler makes one for every lane.
  [[gnu::always_inline]] static V repeat(const C* from) {
    V v;
    if constexpr (sizeof(C) == sizeof(float)) {
      asm("vbroadcastss %1, %0" : "=v"(v) : "m"(*from));
    } else {
      asm("vbroadcastsd %1, %0" : "=v"(v) : "m"(*from));
    }
    return v;
  }
  [[gnu::always_inline]] static V load(const C* from) {
    return *reinterpret_cast<const Anywhere*>(from);
  }
  [[gnu::always_inline]] static void store(const V& v, C* to) {
    *reinterpret_cast<Anywhere*>(to) = v;
  }
  [[gnu::always_inline]] static V load(const bfloat16* from) { return load_floats<Target>(from); }
  [[gnu::always_inline]] static void store(const V& v, bfloat16* to) {
    store_floats<Target>(v, to);
  }
  [[gnu::always_inline]] static V load(const float16* from) {
    V v;
    asm("vcvtph2ps %1, %0" : "=v"(v) : "m"(*reinterpret_cast<const Halves*>(from)));
    return v;
  }
  [[gnu::always_inline]] static void store(const V& v, float16* to) {
    asm("vcvtps2ph $0, %1, %0" : "=m"(*reinterpret_cast<Halves*>(to)) : "v"(v));
  }
  // v in the lanes whose bits are set, 0 in the others.
  [[gnu::always_inline]] static V chosen(std::uint32_t bits, const V& v) {
    using Words [[gnu::vector_size(4 * Target::width)]] =
        std::conditional_t<sizeof(C) == sizeof(float), std::uint32_t, std::uint64_t>;
    Words all, lane;
    if constexpr (sizeof(C) == sizeof(float)) {
      asm("vmovd %1, %x0\n\tvpbroadcastd %x0, %0" : "=v"(all) : "r"(bits));
    } else {
      asm("vmovd %1, %x0\n\tvpbroadcastq %x0, %0" : "=v"(all) : "r"(bits));
    }
    for (int k = 0; k < width; ++k) lane[k] = 1u << k;
    return (all & lane) != 0 ? loaded(v) : V{};
  }
  // What is left of numbers that are kept as Ts.
  template <class T>
  [[gnu::always_inline]] static V kept(const V& v) {
    if constexpr (std::is_same_v<T, bfloat16>) {
      return widened<Target>(as_bfloat16<Target>(v));
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

// One element, for runs that are shorter than a vector.
template <class C>
struct Single {
  static constexpr int width = 1;
  using V = C;

  static V repeat(const C* from) { return *from; }
  template <class T>
  [[gnu::always_inline]] static V load(const T* from) {
    return static_cast<C>(*from);
  }
  template <class T>
  [[gnu::always_inline]] static void store(V v, T* to) {
    *to = T(v);
  }
  [[gnu::always_inline]] static V chosen(std::uint32_t bits, V v) { return bits & 1 ? v : V{}; }
  template <class T>
  [[gnu::always_inline]] static V kept(V v) {
    return static_cast<V>(T(v));
  }
  [[gnu::always_inline]] static C sum(V v) { return v; }
};

// Calls body(Lanes{}, i) or body(Single{}, i) for stretches from i on that cover [begin, n). The
// last vector reaches back over elements that had their turn already.
template <class Target, class C, class Body>
[[gnu::always_inline]] inline void cover(std::int64_t begin, std::int64_t n, const Body& body) {
  using L = Lanes<Target, C>;
  std::int64_t i = begin;
  if (n < L::width) {
    for (; i < n; ++i) body(Single<C>{}, i);
    return;
  }
  for (; i + L::width <= n; i += L::width) body(L{}, i);
  if (i < n) body(L{}, n - L::width);
}

}  // namespace renga
