#include "devices/gil_release.h"
#include "ops/normalization/cpu/statistics.h"

namespace renga {
namespace {

using normalized::AdjoiningChannels, normalized::OneChannel, normalized::TypedNormalization;
using normalized::visit_elements, normalized::visit_values;

// Whether to write y past the caches, of which y may be a part: what reads it next is mostly a
// convolution, which takes longer to compute than to read it from memory.
template <class T>
bool should_stream(const Array& y, const ChannelLayout& layout) {
  constexpr std::size_t kLeastBytes = std::size_t{8} << 20;
  constexpr std::int64_t kWidest = 16;
  const std::int64_t run = layout.inner > 1 ? layout.inner : layout.channels;
  return y.storage()->bytes() >= kLeastBytes && run % kWidest == 0 &&
         starts_cache_line(y.as<const T>());
}

// Pixels of which the vectors of the same channels are computed together, before any is stored, so
// that numbers of channels are read from memory once.
template <int Pixels, class Target, class S, class Element, class Put>
[[gnu::always_inline]] inline void map_pixels(std::int64_t first, std::int64_t channels,
                                              const Element& element, const Put& put) {
  using L = simd::Vector<Target, S>;
  const auto at = [=](int pixel) { return (first + pixel) * channels; };
  if (channels < L::width) {
    for (std::int64_t i = 0; i < Pixels * channels; ++i) {
      put(simd::Scalar<S>{}, at(0) + i,
          element(simd::Scalar<S>{}, at(0) + i, AdjoiningChannels{i % channels}));
    }
    return;
  }
  // y may be x: of the last vector, which may overlap the one before it, values are computed first.
  const std::int64_t last = channels - L::width;
  typename L::V ends[Pixels];
#pragma GCC unroll 1
  for (int p = 0; p < Pixels; ++p) ends[p] = element(L{}, at(p) + last, AdjoiningChannels{last});
  for (std::int64_t c = 0; c < last; c += L::width) {
    typename L::V values[Pixels];
    for (int p = 0; p < Pixels; ++p) values[p] = element(L{}, at(p) + c, AdjoiningChannels{c});
    for (int p = 0; p < Pixels; ++p) put(L{}, at(p) + c, values[p]);
  }
#pragma GCC unroll 1
  for (int p = 0; p < Pixels; ++p) put(L{}, at(p) + last, ends[p]);
}

// Pixels of a channel, as many vectors together. Returns how many of the n pixels are computed.
template <int Vectors, class Target, class S, class Element, class Put>
[[gnu::always_inline]] inline std::int64_t map_plane(std::int64_t first, std::int64_t n,
                                                     OneChannel channel, const Element& element,
                                                     const Put& put) {
  using L = simd::Vector<Target, S>;
  std::int64_t i = 0;
  for (; Vectors > 1 && i + Vectors * L::width <= n; i += Vectors * L::width) {
    typename L::V values[Vectors];
    for (int v = 0; v < Vectors; ++v) {
      values[v] = element(L{}, first + i + v * L::width, channel);
    }
    for (int v = 0; v < Vectors; ++v) put(L{}, first + i + v * L::width, values[v]);
  }
  return i;
}

// y[i...] = element(l, i, channel) of vectors l of elements from i on, which cover all of them.
// `Together` vectors of the same channels are computed before any is stored. With channels last, y
// may be what element() reads.
template <int Together, class S, class T, class Element>
void map_elements(const Array& array, const ChannelLayout& layout, const Element& element) {
  T* const y = array.as<T>();
  const std::int64_t channels = layout.channels, inner = layout.inner;
  const bool streams = should_stream<T>(array, layout);
  const auto put = [=](auto l, std::int64_t i, const auto& v) __attribute__((always_inline)) {
    streams ? l.stream(v, y + i) : l.store(v, y + i);
  };
  if (inner > 1) {
    parallel_for(layout.outer * channels, 2 * inner, [&](std::int64_t begin, std::int64_t end) {
      simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
        for (std::int64_t k = begin; k < end; ++k) {
          const OneChannel channel{k % channels};
          const std::int64_t whole =
              map_plane<Together, decltype(target), S>(k * inner, inner, channel, element, put);
          simd::for_each_vector<decltype(target), S>(
              whole, inner, [=](auto l, std::int64_t i) __attribute__((always_inline)) {
                put(l, k * inner + i, element(l, k * inner + i, channel));
              });
        }
      });
      if (streams) finish_streaming();
    });
    return;
  }
  parallel_for(layout.outer, 2 * channels, [&](std::int64_t begin, std::int64_t end) {
    simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
      using Target = decltype(target);
      std::int64_t pixel = begin;
      for (; Together > 1 && pixel + Together <= end; pixel += Together) {
        map_pixels<Together, Target, S>(pixel, channels, element, put);
      }
      for (; pixel < end; ++pixel) map_pixels<1, Target, S>(pixel, channels, element, put);
    });
    if (streams) finish_streaming();
  });
}

void moments_cpu(const Channels& x, const Array& mean, const Array& var) {
  const GilRelease work(x.array.size());
  visit_dtype(x.array.dtype(), [&]<class T>(Type<T>) {
    using S = Compute<T>;
    if constexpr (is_floating<T>) {
      normalized::moments(x.array.as<const T>(), x.layout, mean.as<S>(), var.as<S>());
    }
  });
}

void normalize_cpu(const Normalization& normalization, const Array& y) {
  const GilRelease work(y.size());
  const ChannelLayout& layout = normalization.x.layout;
  if (normalization.dropout || normalization.residual.defined()) {
    return visit_elements(
        normalization, [&]<class T, class S, class A>(const TypedNormalization<T, S, A>& typed) {
          map_elements<1, S, T>(
              y, layout, [=](auto l, std::int64_t i, auto channel) __attribute__((always_inline)) {
                return typed.output(l, i, channel);
              });
        });
  }
  // Without branches on what follows, in the cache this takes half of the time. Pixels of float64
  // are so far apart that writing several at once takes longer.
  visit_values(
      normalization, [&]<class T, class S, class A>(const TypedNormalization<T, S, A>& typed) {
        map_elements<sizeof(S) == sizeof(double) ? 1 : 4, S, T>(
            y, layout, [=](auto l, std::int64_t i, auto channel) __attribute__((always_inline)) {
              return typed.activated(l, typed.affine(l, typed.centred(l, i, channel), channel));
            });
      });
}

void gradient_sums_cpu(const Normalization& normalization, const Array& gy, const Array& sum_g,
                       const Array& sum_g_x) {
  const GilRelease work(gy.size());
  visit_elements(normalization,
                 [&]<class T, class S, class A>(const TypedNormalization<T, S, A>& typed) {
                   normalized::gradient_sums(typed, gy.as<const T>(), normalization.x.layout,
                                             sum_g.as<S>(), sum_g_x.as<S>());
                 });
}

void input_grad_cpu(const Normalization& normalization, const Array& gy, const Array& shift,
                    const Array& slope, const Array& gx) {
  const GilRelease work(gx.size());
  visit_elements(
      normalization, [&]<class T, class S, class A>(const TypedNormalization<T, S, A>& typed) {
        const T* from = gy.as<const T>();
        const S *b = shift.as<S>(), *k = slope.as<S>();
        map_elements<1, S, T>(
            gx, normalization.x.layout,
            [=](auto l, std::int64_t i, auto channel) __attribute__((always_inline)) {
              const auto d = typed.centred(l, i, channel);
              const auto g = typed.gradient(l, i, d, channel, from);
              return g * channel.get(l, typed.scale) - channel.get(l, b) - d * channel.get(l, k);
            });
      });
}

[[maybe_unused]] const bool registered =
    normalization_kernels.add(0, {moments_cpu, normalize_cpu, gradient_sums_cpu, input_grad_cpu});

}  // namespace
}  // namespace renga
