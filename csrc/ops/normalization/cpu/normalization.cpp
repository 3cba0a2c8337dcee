#include "devices/gil_release.h"
#include "ops/normalization/cpu/statistics.h"

namespace renga {
namespace {

using normalized::OfPlane, normalized::OfRow, normalized::Typed, normalized::visit_types;

// Calls element(l, i, of) for all elements: those from i on, of the channel or channels `of`.
template <class S, class Element>
void each_element(const ChannelLayout& layout, const Element& element) {
  const std::int64_t channels = layout.channels, inner = layout.inner;
  if (inner > 1) {
    parallel_for(layout.outer * channels, 2 * inner, [&](std::int64_t begin, std::int64_t end) {
      simd::dispatch<float>([=](auto target) __attribute__((always_inline)) {
        for (std::int64_t k = begin; k < end; ++k) {
          const OfPlane of{k % channels};
          simd::for_each_vector<decltype(target), S>(
              0, inner, [=](auto l, std::int64_t i) __attribute__((always_inline)) {
                element(l, k * inner + i, of);
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
              element(l, r * channels + c, OfRow{c});
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

void normalize_cpu(const Normalization& given, const Array& y) {
  const GilRelease work(y.size());
  visit_types(given, [&]<class T, class S, class A>(const Typed<T, S, A>& of_x) {
    T* to = y.as<T>();
    each_element<S>(
        given.x.layout, [=](auto l, std::int64_t i, auto of) __attribute__((always_inline)) {
          l.store(of_x.dropped_value(l, i, of), to + i);
        });
  });
}

void gradient_sums_cpu(const Normalization& given, const Array& gy, const Array& sum_g,
                       const Array& sum_g_x) {
  const GilRelease work(gy.size());
  visit_types(given, [&]<class T, class S, class A>(const Typed<T, S, A>& of_x) {
    normalized::gradient_sums(of_x, gy.as<const T>(), given.x.layout, sum_g.as<S>(),
                              sum_g_x.as<S>());
  });
}

void input_grad_cpu(const Normalization& given, const Array& gy, const Array& shift,
                    const Array& slope, const Array& gx) {
  const GilRelease work(gx.size());
  visit_types(given, [&]<class T, class S, class A>(const Typed<T, S, A>& of_x) {
    const T* from = gy.as<const T>();
    T* to = gx.as<T>();
    const S *b = shift.as<S>(), *k = slope.as<S>();
    each_element<S>(
        given.x.layout, [=](auto l, std::int64_t i, auto of) __attribute__((always_inline)) {
          const auto d = of_x.centred(l, i, of);
          const auto g = of_x.gradient(l, i, d, of, from);
          l.store((g - of.get(l, b)) * of.get(l, of_x.scale) - d * of.get(l, k), to + i);
        });
  });
}

[[maybe_unused]] const bool registered =
    normalization_kernels.add(0, {moments_cpu, normalize_cpu, gradient_sums_cpu, input_grad_cpu});

}  // namespace
}  // namespace renga
