// Channels side by side, in vectors where they fit.
#pragma once

#include <cstdint>

#include "simd/dispatch.h"

namespace renga::depthwise {

// Some vectors side by side.
template <class Target, int count>
struct Wide {
  Floats<Target> parts[count];

  [[gnu::always_inline]] friend Wide operator+(Wide a, const Wide& b) {
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) a.parts[i] += b.parts[i];
    return a;
  }
};

template <class Target, int count, class Pixel>
[[gnu::always_inline]] inline void load(const Pixel* from, Wide<Target, count>& x) {
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) x.parts[i] = load_floats<Target>(from + i * Target::width);
}
template <class Target, int count, class Pixel>
[[gnu::always_inline]] inline void store(const Wide<Target, count>& x, Pixel* to) {
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) store_floats<Target>(x.parts[i], to + i * Target::width);
}
template <class Target, int count>
[[gnu::always_inline]] inline void add_product(const Wide<Target, count>& a,
                                               const Wide<Target, count>& b,
                                               Wide<Target, count>& sum) {
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) sum.parts[i] += a.parts[i] * b.parts[i];
}

// The same of one number.
template <class Pixel>
inline void load(const Pixel* from, float& x) {
  x = static_cast<float>(*from);
}
template <class Pixel>
inline void store(const float& x, Pixel* to) {
  *to = Pixel(x);
}
inline void add_product(const float& a, const float& b, float& sum) { sum += a * b; }

// Calls body(channel, X{}) for groups of channels that cover [0, channels): X is as wide as may be.
template <class Target, int most, class Body>
[[gnu::always_inline]] inline void each_group(std::int64_t channels, const Body& body) {
  constexpr int width = Target::width;
  std::int64_t c = 0;
  for (; c + most * width <= channels; c += most * width) body(c, Wide<Target, most>{});
  for (; c + width <= channels; c += width) body(c, Wide<Target, 1>{});
  for (; c < channels; ++c) body(c, 0.0f);
}

}  // namespace renga::depthwise
