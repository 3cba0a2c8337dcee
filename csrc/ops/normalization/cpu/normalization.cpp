#include "devices/gil_release.h"
#include "ops/normalization/cpu/statistics.h"

namespace renga {
namespace {

using normalized::AdjoiningChannels, normalized::OneChannel, normalized::TypedNormalization;
using normalized::visit_elements;

// Whether to write y past the caches, of which y may be a part: what reads it next is mostly a
// convolution, which takes longer to compute than to read it from memory.
template <class T>
bool should_stream(const Array& y, const ChannelLayout& layout) {
  constexpr std::size_t kLeastBytes = std::size_t{4} << 20;
  constexpr std::int64_t kWidest = 16;
  const std::int64_t run = layout.inner > 1 ? layout.inner : layout.channels;
  return y.storage()->bytes() >= kLeastBytes && run % kWidest == 0 &&
         starts_cache_line(y.as<const T>());
}

// y[i...] = element(l, i, channel) of vectors l of elements from i on, which cover all of them.
template <class S, class T, class Element>
void map_elements(const Array& array, const ChannelLayout& layout, const Element& element) {
  T* const y = array.as<T>();
  const std::int64_t channels = layout.channels, inner = layout.inner;
  const bool streams = should_stream<T>(array, layout);
  const auto put = [=](auto l, std::int64_t i, auto channel) __attribute__((always_inline)) {
    if (streams) {
      l.stream(element(l, i, channel), y + i);
    } else {
      l.store(element(l, i, channel), y + i);
    }
  };
  if (inner > 1) {
    parallel_for(layout.outer * channels, 2 * inner, [&](std::int64_t begin, std::int64_t end) {
      simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
        for (std::int64_t k = begin; k < end; ++k) {
          const OneChannel channel{k % channels};
          simd::for_each_vector<decltype(target), S>(
              0, inner, [=](auto l, std::int64_t i) __attribute__((always_inline)) {
                put(l, k * inner + i, channel);
              });
        }
      });
      if (streams) finish_streaming();
    });
    return;
  }
  parallel_for(layout.outer, 2 * channels, [&](std::int64_t begin, std::int64_t end) {
    simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
      for (std::int64_t r = begin; r < end; ++r) {
        simd::for_each_vector<decltype(target), S>(
            0, channels, [=](auto l, std::int64_t c) __attribute__((always_inline)) {
              put(l, r * channels + c, AdjoiningChannels{c});
            });
      }
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
  visit_elements(normalization,
                 [&]<class T, class S, class A>(const TypedNormalization<T, S, A>& typed) {
                   map_elements<S, T>(
                       y, normalization.x.layout,
                       [=](auto l, std::int64_t i, auto channel)
                           __attribute__((always_inline)) { return typed.output(l, i, channel); });
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
        map_elements<S, T>(
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
