// A single number with the interface of a vector.
#pragma once

#include <cstdint>

#include "tensor/half.h"

namespace renga::simd {

template <class C>
struct Scalar {
  static constexpr int width = 1;
  using V = C;
  using Value = C;

  RENGA_INLINE static V broadcast(const C* from) { return *from; }
  template <class T>
  RENGA_INLINE static V load(const T* from) {
    return static_cast<C>(*from);
  }
  template <class T>
  RENGA_INLINE static V load_apart(const T* from) {
    return load(from);
  }
  template <class T>
  RENGA_INLINE static void store(V v, T* to) {
    *to = T(v);
  }
  template <class T>
  RENGA_INLINE static void stream(V v, T* to) {
    store(v, to);
  }
  RENGA_INLINE static V masked(std::uint32_t bits, V v) { return bits & 1 ? v : V{}; }
  template <class T>
  RENGA_INLINE static V rounded_to(V v) {
    return static_cast<V>(T(v));
  }
  RENGA_INLINE static C sum(V v) { return v; }
};

}  // namespace renga::simd
