#include "ops/normalization/fused_elements.h"
#include "ops/normalization/normalization.h"
#include "ops/reduction/cuda/fold.cu.h"
#include "simd/scalar.h"

namespace renga {
namespace {

using normalized::OneChannel, normalized::TypedNormalization, normalized::visit_types;

// element(i, channel) for all elements of a layout.
template <class Element>
__global__ void visit_channels(ChannelLayout layout, Element element) {
  const std::int64_t size = layout.outer * layout.channels * layout.inner;
  for (std::int64_t i = cuda::thread_index(); i < size; i += cuda::thread_count()) {
    element(i, OneChannel{i / layout.inner % layout.channels});
  }
}

template <class Element>
void for_each_element(const Channels& x, const Element& element) {
  if (x.array.size() == 0) return;
  cuda::launch(x.array.device(), cuda::grid_for(x.array.size()), visit_channels<Element>, x.layout,
               element);
}

template <class T, class S, class A>
struct Normalize {
  TypedNormalization<T, S, A> typed;
  T* y;
  __device__ void operator()(std::int64_t i, OneChannel channel) const {
    using L = simd::Scalar<S>;
    L::store(typed.output(L{}, i, channel), y + i);
  }
};

template <class T, class S, class A>
struct InputGrad {
  TypedNormalization<T, S, A> typed;
  const T* gy;
  const S *shift, *slope;
  T* gx;
  __device__ void operator()(std::int64_t i, OneChannel channel) const {
    using L = simd::Scalar<S>;
    const S d = typed.centred(L{}, i, channel), g = typed.gradient(L{}, i, d, channel, gy);
    const S scale = channel.get(L{}, typed.scale);
    L::store((g - channel.get(L{}, shift)) * scale - d * channel.get(L{}, slope), gx + i);
  }
};

struct TwoSums {
  double first, second;
};

// Sums of two numbers of each element of a channel.
template <class T, class S>
struct ChannelFold {
  using Value = TwoSums;
  const T* x;
  ChannelLayout layout;
  S *first, *second;

  __device__ Value start() const { return {0, 0}; }
  __device__ Value fold(const Value& a, const Value& b) const {
    return {a.first + b.first, a.second + b.second};
  }
  __device__ std::int64_t position(const std::byte* p) const {
    return reinterpret_cast<const T*>(p) - x;
  }
  __device__ std::int64_t channel(const std::byte* p) const {
    return position(p) / layout.inner % layout.channels;
  }
  __device__ std::int64_t result(const std::byte* p) const {
    return reinterpret_cast<const S*>(p) - first;
  }
};

// Differences from the channel's first element and their squares: nothing cancels, however far from
// 0 the elements are.
template <class T, class S>
struct Moments : ChannelFold<T, S> {
  using Value = TwoSums;
  __device__ double pivot(std::int64_t channel) const {
    return static_cast<double>(static_cast<S>(this->x[channel * this->layout.inner]));
  }
  __device__ Value element(const std::byte* p, std::int64_t) const {
    const double d = static_cast<double>(cuda::load<T>(p)) - pivot(this->channel(p));
    return {d, d * d};
  }
  __device__ void store(std::byte* p, const Value& sums) const {
    const std::int64_t c = this->result(p);
    const double count = static_cast<double>(this->layout.count()), shift = sums.first / count;
    const double squares = sums.second - shift * sums.first;
    this->first[c] = static_cast<S>(pivot(c) + shift);
    this->second[c] = static_cast<S>(squares < 0 ? 0 : squares / count);
  }
};

template <class T, class S, class A>
struct GradientSums : ChannelFold<T, S> {
  using Value = TwoSums;
  TypedNormalization<T, S, A> typed;
  const T* gy;
  __device__ Value element(const std::byte* p, std::int64_t) const {
    using L = simd::Scalar<S>;
    const std::int64_t i = this->position(p);
    const OneChannel channel{this->channel(p)};
    const S d = typed.centred(L{}, i, channel), g = typed.gradient(L{}, i, d, channel, gy);
    return {static_cast<double>(g), static_cast<double>(g * d)};
  }
  __device__ void store(std::byte* p, const Value& sums) const {
    const std::int64_t c = this->result(p);
    this->first[c] = static_cast<S>(sums.first);
    this->second[c] = static_cast<S>(sums.second);
  }
};

// `f` over the elements of each channel; `first` is its first result.
template <class F>
void fold_channels(const F& f, const Channels& x, const Array& first, const Array& second) {
  if (x.layout.count() == 0) {
    fill(first, 0);
    return fill(second, 0);
  }
  const auto [outer, channels, inner] = x.layout;
  const std::int64_t item = x.array.itemsize();
  const auto view = [&](const Shape& shape, const Strides& strides) {
    return Array(x.array.storage(), x.array.data(), shape, strides, x.array.dtype());
  };
  cuda::fold(f, first, view({channels}, {inner * item}),
             view({outer, inner}, {channels * inner * item, item}));
}

void moments_cuda(const Channels& x, const Array& mean, const Array& var) {
  visit_dtype(x.array.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      using S = Compute<T>;
      const Moments<T, S> moments{{x.array.as<const T>(), x.layout, mean.as<S>(), var.as<S>()}};
      fold_channels(moments, x, mean, var);
    }
  });
}

void normalize_cuda(const Normalization& normalization, const Array& y) {
  visit_types(normalization,
              [&]<class T, class S, class A>(const TypedNormalization<T, S, A>& typed) {
                for_each_element(normalization.x, Normalize<T, S, A>{typed, y.as<T>()});
              });
}

void gradient_sums_cuda(const Normalization& normalization, const Array& gy, const Array& sum_g,
                        const Array& sum_g_x) {
  const Channels& x = normalization.x;
  visit_types(normalization, [&]<class T, class S, class A>(
                                 const TypedNormalization<T, S, A>& typed) {
    const GradientSums<T, S, A> sums{
        {x.array.as<const T>(), x.layout, sum_g.as<S>(), sum_g_x.as<S>()}, typed, gy.as<const T>()};
    fold_channels(sums, x, sum_g, sum_g_x);
  });
}

void input_grad_cuda(const Normalization& normalization, const Array& gy, const Array& shift,
                     const Array& slope, const Array& gx) {
  visit_types(normalization,
              [&]<class T, class S, class A>(const TypedNormalization<T, S, A>& typed) {
                for_each_element(normalization.x,
                                 InputGrad<T, S, A>{typed, gy.as<const T>(), shift.as<const S>(),
                                                    slope.as<const S>(), gx.as<T>()});
              });
}

[[maybe_unused]] const bool registered = normalization_kernels.add(
    cuda::number(), {moments_cuda, normalize_cuda, gradient_sums_cuda, input_grad_cuda});

}  // namespace
}  // namespace renga
