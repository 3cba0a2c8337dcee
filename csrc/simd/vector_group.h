// Adjoining vectors that are loaded, computed and stored together.
#pragma once

#include <cstdint>

#include "simd/float_vector.h"

namespace renga::simd {

template <class Target, int count>
struct VectorGroup {
  Floats<Target> vectors[count];

  [[gnu::always_inline]] friend VectorGroup operator+(VectorGroup a, const VectorGroup& b) {
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) a.vectors[i] += b.vectors[i];
    return a;
  }
};

template <class Target, int count, class Pixel>
[[gnu::always_inline]] inline void load_group(const Pixel* from, VectorGroup<Target, count>& x) {
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) x.vectors[i] = load_floats<Target>(from + i * Target::width);
}
template <class Target, int count, class Pixel>
[[gnu::always_inline]] inline void store_group(const VectorGroup<Target, count>& x, Pixel* to) {
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) store_floats<Target>(x.vectors[i], to + i * Target::width);
}
template <class Target, int count>
[[gnu::always_inline]] inline void add_product(const VectorGroup<Target, count>& a,
                                               const VectorGroup<Target, count>& b,
                                               VectorGroup<Target, count>& sum) {
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) sum.vectors[i] += a.vectors[i] * b.vectors[i];
}

// These functions do the same for a single element.
template <class Pixel>
inline void load_group(const Pixel* from, float& x) {
  x = static_cast<float>(*from);
}
template <class Pixel>
inline void store_group(const float& x, Pixel* to) {
  *to = Pixel(x);
}
inline void add_product(const float& a, const float& b, float& sum) { sum += a * b; }

// Calls body(i, X{}) for groups from element i on that cover [0, n). X is VectorGroup<Target,
// most>, then a single vector, then a float.
template <class Target, int most, class Body>
[[gnu::always_inline]] inline void for_each_group(std::int64_t n, const Body& body) {
  constexpr std::int64_t width = Target::width;
  std::int64_t i = 0;
  for (; i + most * width <= n; i += most * width) body(i, VectorGroup<Target, most>{});
  for (; i + width <= n; i += width) body(i, VectorGroup<Target, 1>{});
  for (; i < n; ++i) body(i, 0.0f);
}

}  // namespace renga::simd
