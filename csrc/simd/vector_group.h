// Adjoining vectors that are loaded, computed and stored together.
#pragma once

#include <cstdint>

#include "simd/vector.h"

namespace renga::simd {

// Vectors of C, float or double.
template <class Target, int count, class C = float>
struct VectorGroup {
  typename Vector<Target, C>::V vectors[count];

  [[gnu::always_inline]] friend VectorGroup operator+(VectorGroup a, const VectorGroup& b) {
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) a.vectors[i] += b.vectors[i];
    return a;
  }
};

template <class Target, int count, class C, class Pixel>
[[gnu::always_inline]] inline void load_group(const Pixel* from, VectorGroup<Target, count, C>& x) {
  using L = Vector<Target, C>;
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) x.vectors[i] = L::load(from + i * L::width);
}
template <class Target, int count, class C, class Pixel>
[[gnu::always_inline]] inline void store_group(const VectorGroup<Target, count, C>& x, Pixel* to) {
  using L = Vector<Target, C>;
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) L::store(x.vectors[i], to + i * L::width);
}
template <class Target, int count, class C>
[[gnu::always_inline]] inline void add_product(const VectorGroup<Target, count, C>& a,
                                               const VectorGroup<Target, count, C>& b,
                                               VectorGroup<Target, count, C>& sum) {
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) sum.vectors[i] += a.vectors[i] * b.vectors[i];
}

// These functions do the same for a single element.
template <class C, class Pixel>
inline void load_group(const Pixel* from, C& x) {
  x = static_cast<C>(*from);
}
template <class C, class Pixel>
inline void store_group(const C& x, Pixel* to) {
  *to = Pixel(x);
}
template <class C>
inline void add_product(const C& a, const C& b, C& sum) {
  sum += a * b;
}

// Calls body(i, X{}) for groups from element i on that cover [0, n). X is VectorGroup<Target,
// most, C>, then a single vector, then a C.
template <class Target, int most, class C, class Body>
[[gnu::always_inline]] inline void for_each_group(std::int64_t n, const Body& body) {
  constexpr std::int64_t width = Vector<Target, C>::width;
  std::int64_t i = 0;
  for (; i + most * width <= n; i += most * width) body(i, VectorGroup<Target, most, C>{});
  for (; i + width <= n; i += width) body(i, VectorGroup<Target, 1, C>{});
  for (; i < n; ++i) body(i, C(0));
}

}  // namespace renga::simd
