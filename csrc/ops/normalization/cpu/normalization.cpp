#include "devices/gil_release.h"
#include "ops/normalization/cpu/statistics.h"

namespace renga {
namespace {

using normalized::AdjoiningChannels, normalized::OneChannel, normalized::TypedNormalization;
using normalized::visit_types;

// Calls element(l, i, channel) for vectors of elements from i on that cover all of them.
template <class S, class Element>
void for_each_element(const ChannelLayout& layout, const Element& element) {
  const std::int64_t channels = layout.channels, inner = layout.inner;
  if (inner > 1) {
    parallel_for(layout.outer * channels, 2 * inner, [&](std::int64_t begin, std::int64_t end) {
      simd::dispatch<float>([=](auto target) __attribute__((always_inline)) {
        for (std::int64_t k = begin; k < end; ++k) {
          const OneChannel channel{k % channels};
          simd::for_each_vector<decltype(target), S>(
              0, inner, [=](auto l, std::int64_t i) __attribute__((always_inline)) {
                element(l, k * inner + i, channel);
              });
        }
      });
    });
    return;
  }
  parallel_for(layout.outer, 2 * channels, [&](std::int64_t begin, std::int64_t end) {
    simd::dispatch<float>([=](auto target) __attribute__((always_inline)) {
      for (std::int64_t r = begin; r < end; ++r) {
        simd::for_each_vector<decltype(target), S>(
            0, channels, [=](auto l, std::int64_t c) __attribute__((always_inline)) {
              element(l, r * channels + c, AdjoiningChannels{c});
            });
      }
    });
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
  visit_types(normalization,
              [&]<class T, class S, class A>(const TypedNormalization<T, S, A>& typed) {
                T* to = y.as<T>();
                for_each_element<S>(
                    normalization.x.layout, [=](auto l, std::int64_t i, auto channel)
                                                __attribute__((always_inline)) {
                                                  l.store(typed.output(l, i, channel), to + i);
                                                });
              });
}

void gradient_sums_cpu(const Normalization& normalization, const Array& gy, const Array& sum_g,
                       const Array& sum_g_x) {
  const GilRelease work(gy.size());
  visit_types(normalization,
              [&]<class T, class S, class A>(const TypedNormalization<T, S, A>& typed) {
                normalized::gradient_sums(typed, gy.as<const T>(), normalization.x.layout,
                                          sum_g.as<S>(), sum_g_x.as<S>());
              });
}

void input_grad_cpu(const Normalization& normalization, const Array& gy, const Array& shift,
                    const Array& slope, const Array& gx) {
  const GilRelease work(gx.size());
  visit_types(
      normalization, [&]<class T, class S, class A>(const TypedNormalization<T, S, A>& typed) {
        const T* from = gy.as<const T>();
        T* to = gx.as<T>();
        const S *b = shift.as<S>(), *k = slope.as<S>();
        for_each_element<S>(
            normalization.x.layout, [=](auto l, std::int64_t i,
                                        auto channel) __attribute__((always_inline)) {
              const auto d = typed.centred(l, i, channel);
              const auto g = typed.gradient(l, i, d, channel, from);
              l.store((g - channel.get(l, b)) * channel.get(l, typed.scale) - d * channel.get(l, k),
                      to + i);
            });
      });
}

[[maybe_unused]] const bool registered =
    normalization_kernels.add(0, {moments_cpu, normalize_cpu, gradient_sums_cpu, input_grad_cpu});

}  // namespace
}  // namespace renga
